// MultiHeadAttention: each token looks at itself and at the tokens before it (Vaswani et al., "Attention is
// all you need", 2017).
#pragma once

#include <cstdint>
#include <vector>

#include "handgrad/nn/linear.h"
#include "handgrad/nn/module.h"

namespace handgrad::nn {

/// x [B, T, C] to [B, T, C], C = emb_dim. Queries, keys and values are three linear maps of x, each cut into
/// heads of D = C / n_heads numbers; for each head
///
///     weights = softmax(query key^T / sqrt(D), positions after the token masked out)      [T, T]
///     output  = dropout(weights) value                                                    [T, D]
///
/// then the heads side by side go through out_proj.
///
///     parameter                              shape   elsewhere (GPT-2)
///     W_query.weight, W_key., W_value.       [C, C]  the three thirds of attn.c_attn.weight, transposed
///     W_query.bias, ... (with qkv_bias)      [C]     attn.c_attn.bias
///     out_proj.weight, out_proj.bias         [C, C]  attn.c_proj, transposed
///
/// A first token sees only itself: its output before out_proj is its own value.
class MultiHeadAttention final : public Layer {
 public:
  /// ValueError unless n_heads divides emb_dim and 0 <= drop_rate < 1. Form::composed calls the three maps
  /// one by one and computes the attention from primitive operations; fused, one product makes all three.
  MultiHeadAttention(std::int64_t emb_dim, std::int64_t n_heads, double drop_rate = 0, bool qkv_bias = false,
                     Form form = Form::fused);

  Tensor forward(const Tensor& x) override;

  int n_heads() const { return n_heads_; }                    ///< H
  double flops_per_token(std::int64_t cols) const override {  // of both products; the maps count themselves
    return 4 * static_cast<double>(cols * out_proj.in());
  }

  /// @{ The children, each [C, C].
  Linear& W_query;
  Linear& W_key;
  Linear& W_value;
  Linear& out_proj;
  /// @}

 private:
  Tensor fused_qkv(const Tensor& x);

  int n_heads_;
  double drop_rate_;
  Form form_;
  std::vector<Tensor> weights_, biases_;  // the handles, in lists that are made once
};

}  // namespace handgrad::nn
