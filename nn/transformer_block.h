// TransformerBlock: attention, then a feed-forward layer, each in a residual branch behind a norm. FeedForward: the part
// that works on each token alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "handgrad/nn/activation.h"
#include "handgrad/nn/attention.h"
#include "handgrad/nn/layer_norm.h"
#include "handgrad/nn/linear.h"
#include "handgrad/nn/module.h"
#include "handgrad/nn/sequential.h"

namespace handgrad::nn {

/// x [..., width] to [..., hidden], an activation, and back to [..., width]; the book's form, hidden = 4 *
/// width.
///
///     parameter        shape            elsewhere (GPT-2)
///     layers.0.weight  [hidden, width]  mlp.c_fc.weight, transposed
///     layers.0.bias    [hidden]         mlp.c_fc.bias
///     layers.2.weight  [width, hidden]  mlp.c_proj.weight, transposed
///     layers.2.bias    [width]          mlp.c_proj.bias
class FeedForward final : public Layer {
 public:
  /// `activation` as in nn/activation.h.
  FeedForward(std::int64_t width, std::int64_t hidden, std::string_view activation = "gelu")
      : layers(child<Sequential>("layers")) {
    layers.add<Linear>(width, hidden);
    layers.add(make_activation(activation));
    layers.add<Linear>(hidden, width).end_branch();
  }
  /// hidden = 4 * width, gelu.
  explicit FeedForward(std::int64_t width) : FeedForward(width, 4 * width) {}

  Tensor forward(const Tensor& x) override { return layers(x); }

  Sequential& layers;  ///< Linear, activation, Linear: children 0, 1, 2
};

/// The book's keys; norm and ff as they are give GPT-2's block.
struct TransformerBlockConfig {
  /// @{ C, and H, which divides it.
  std::int64_t emb_dim = 0, n_heads = 0;
  /// @}
  double drop_rate = 0;          ///< of attention weights and of both branches
  bool qkv_bias = false;         ///< whether W_query, W_key and W_value have a bias
  Form attention = Form::fused;  ///< how attention is computed
  /// Makes norm1 and norm2.
  LayerMaker norm = [](std::int64_t width) { return std::make_unique<LayerNorm>(width); };
  LayerMaker ff = [](std::int64_t width) { return std::make_unique<FeedForward>(width); };  ///< makes ff
};

/// x [B, T, C] to [B, T, C], the pre-norm form of GPT-2 and the book:
///
///     x = x + drop_shortcut(att(norm1(x)))
///     x = x + drop_shortcut(ff(norm2(x)))
///
/// Children norm1, att, norm2, ff, drop_shortcut.
class TransformerBlock final : public Layer {
 public:
  /// ValueError as MultiHeadAttention; `emb_dim` and `n_heads` have no defaults.
  explicit TransformerBlock(const TransformerBlockConfig& config)
      : norm1(child("norm1", config.norm(config.emb_dim))),
        att(child<MultiHeadAttention>("att", config.emb_dim, config.n_heads, config.drop_rate,
                                      config.qkv_bias, config.attention)),
        norm2(child("norm2", config.norm(config.emb_dim))),
        ff(child("ff", config.ff(config.emb_dim))),
        drop_shortcut(child<Dropout>("drop_shortcut", config.drop_rate)) {}

  Tensor forward(const Tensor& x) override {
    const Tensor middle = x + drop_shortcut(att(norm1(x)));
    return middle + drop_shortcut(ff(norm2(middle)));
  }

  Layer& norm1;             ///< before att
  MultiHeadAttention& att;  ///< attention
  Layer& norm2;             ///< before ff
  Layer& ff;                ///< feed-forward
  Dropout& drop_shortcut;   ///< of both branches
};

}  // namespace handgrad::nn
