// TransformerBlock: attention, then a feed-forward layer, each in a residual branch behind a norm.
#pragma once

#include <cstdint>
#include <memory>

#include "handgrad/nn/attention.h"
#include "handgrad/nn/dropout.h"
#include "handgrad/nn/feed_forward.h"
#include "handgrad/nn/layer_norm.h"
#include "handgrad/nn/module.h"

namespace handgrad::nn {

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
