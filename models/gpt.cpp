#include "handgrad/models/gpt.h"

#include <utility>

#include <fmt/format.h>

#include "handgrad/core/error.h"

namespace handgrad::models {
namespace {

constexpr std::int64_t kLargestSize = std::int64_t{1} << 31;  // products of two sizes stay far from overflow

constexpr double kMostNumbers = 1e11;  // 400 GB of float32: beyond, a size is a slip of the pen

/// Weights of embeddings, head and blocks; biases and norms are small beside them.
double estimated_numbers(const GptConfig& config) {
  const auto width = static_cast<double>(config.emb_dim), layers = static_cast<double>(config.n_layers);
  const auto rows = static_cast<double>(config.vocab_size) * (config.tie_weights ? 1 : 2) +
                    static_cast<double>(config.context_length);
  return (12 * layers * width + rows) * width;
}

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
  if (const double numbers = estimated_numbers(config); numbers > kMostNumbers)
    throw ValueError("gpt",
                     fmt::format("a model may have at most {:.0e} parameters, these sizes give {:.1e}",
                                 kMostNumbers, numbers),
                     {}, "a smaller n_layers, emb_dim or vocab_size");
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
  nn::set_init(*this, config.init);
  nn::draw(*this, seed);
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
