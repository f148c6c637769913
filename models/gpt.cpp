#include "handgrad/models/gpt.h"

#include <utility>

#include <fmt/format.h>

#include "handgrad/core/error.h"

namespace handgrad::models {
namespace {

constexpr std::int64_t kLargestSize = std::int64_t{1} << 31;  // products of two sizes stay far from overflow

/// The configuration, once it is known to fit.
const GptConfig& checked(const GptConfig& config) {
  const std::pair<const char*, std::int64_t> sizes[] = {{"vocab_size", config.vocab_size},
                                                        {"context_length", config.context_length},
                                                        {"emb_dim", config.emb_dim},
                                                        {"n_layers", config.n_layers}};
  for (const auto& [name, size] : sizes)
    if (size < 1 || size > kLargestSize)
      throw ValueError("gpt", fmt::format("{} must be at least 1 and at most 2^31, got {}", name, size));
  if (config.n_heads < 1 || config.emb_dim % config.n_heads != 0)
    throw ValueError("gpt",
                     fmt::format("n_heads must divide emb_dim = {}, got {}", config.emb_dim, config.n_heads));
  nn::Dropout::checked_rate("gpt", config.drop_rate);
  return config;
}

nn::TransformerBlockConfig block_config(const GptConfig& config) {
  return {.emb_dim = config.emb_dim,
          .n_heads = config.n_heads,
          .drop_rate = config.drop_rate,
          .qkv_bias = config.qkv_bias,
          .attention = config.attention,
          .norm = config.norm,
          .ff = config.ff};
}

}  // namespace

GptModel::GptModel(const GptConfig& config, std::uint64_t seed)
    : tok_emb(child<nn::Embedding>("tok_emb", checked(config).vocab_size, config.emb_dim)),
      pos_emb(child<nn::Embedding>("pos_emb", config.context_length, config.emb_dim)),
      drop_emb(child<nn::Dropout>("drop_emb", config.drop_rate)),
      trf_blocks(child<nn::Sequential>("trf_blocks")),
      final_norm(child("final_norm", config.norm(config.emb_dim))),
      out_head(config.tie_weights ? child<nn::Linear>("out_head", tok_emb.weight)
                                  : child<nn::Linear>("out_head", config.emb_dim, config.vocab_size, false)) {
  for (std::int64_t i = 0; i < config.n_layers; ++i)
    trf_blocks.add<nn::TransformerBlock>(block_config(config));
  nn::initialise(*this, config.init, seed);
}

Tensor GptModel::forward(const Ids& ids) {
  if (ids.shape().rank() != 2 || ids.size(1) > context_length())
    throw ShapeError("gpt",
                     fmt::format("ids must have shape [B, T] with T at most context_length = {}, got {}",
                                 context_length(), ids.shape().text()));
  const Tensor x = tok_emb(ids) + pos_emb(arange_ids(ids.size(1)));
  return out_head(final_norm(trf_blocks(drop_emb(x))));
}

}  // namespace handgrad::models
