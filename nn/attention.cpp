#include "handgrad/nn/attention.h"

#include <fmt/format.h>

#include "handgrad/core/autograd.h"
#include "handgrad/core/error.h"
#include "handgrad/nn/activation.h"

namespace handgrad::nn {
namespace {

/// emb_dim, once it is known that heads fit into it; nothing has been allocated then.
std::int64_t checked_width(std::int64_t emb_dim, std::int64_t n_heads) {
  if (n_heads < 1 || emb_dim < 1 || emb_dim % n_heads != 0)
    throw ValueError("multi_head_attention",
                     fmt::format("n_heads must divide emb_dim = {}, got {}", emb_dim, n_heads));
  return emb_dim;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t emb_dim, std::int64_t n_heads, double drop_rate,
                                       bool qkv_bias, Form form)
    : W_query(child<Linear>("W_query", checked_width(emb_dim, n_heads), emb_dim, qkv_bias)),
      W_key(child<Linear>("W_key", emb_dim, emb_dim, qkv_bias)),
      W_value(child<Linear>("W_value", emb_dim, emb_dim, qkv_bias)),
      out_proj(child<Linear>("out_proj", emb_dim, emb_dim)),
      n_heads_(static_cast<int>(n_heads)),
      drop_rate_(Dropout::checked_rate("multi_head_attention", drop_rate)),
      form_(form),
      weights_(3),
      biases_(qkv_bias ? 3 : 0) {
  out_proj.end_branch();
}

Tensor MultiHeadAttention::forward(const Tensor& x) {
  const double drop_rate = training() ? drop_rate_ : 0;
  if (form_ == Form::composed) {
    const Tensor qkv = concat({W_query(x), W_key(x), W_value(x)}, kLast);
    return out_proj(causal_attention_composed(qkv, n_heads_, drop_rate));
  }
  return out_proj(causal_attention(fused_qkv(x), n_heads_, drop_rate));
}

Tensor MultiHeadAttention::fused_qkv(const Tensor& x) {
  Linear* const maps[] = {&W_query, &W_key, &W_value};
  for (std::size_t i = 0; i < 3; ++i) {
    weights_[i] = maps[i]->weight;
    if (!biases_.empty()) biases_[i] = *maps[i]->bias;
  }
  Tensor qkv = linear_fused(x, weights_, biases_);
  for (std::int64_t i = 0; i < 3; ++i) {
    if (!maps[i]->observed()) continue;
    const NoGrad no_grad;
    maps[i]->show_output(slice(qkv, kLast, i * x.size(kLast), (i + 1) * x.size(kLast)));
  }
  return qkv;
}

}  // namespace handgrad::nn
