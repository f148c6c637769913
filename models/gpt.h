// GptModel: a decoder-only transformer in the form of GPT-2 (Radford et al., "Language models are
// unsupervised multitask learners", 2019), with the names of "Build a Large Language Model (From Scratch)".
#pragma once

#include <cstdint>
#include <memory>

#include "handgrad/io/fields.h"
#include "handgrad/models/model.h"
#include "handgrad/nn/embedding.h"
#include "handgrad/nn/init.h"
#include "handgrad/nn/sequential.h"
#include "handgrad/nn/transformer_block.h"

namespace handgrad::models {

/// The book's keys; the sizes of GPT-2 small.
struct GptConfig {
  std::int64_t vocab_size = 50257;       ///< V: how many different tokens
  std::int64_t context_length = 1024;    ///< the most tokens in a row
  std::int64_t emb_dim = 768;            ///< C: numbers for each token; n_heads must divide it
  std::int64_t n_heads = 12;             ///< H
  std::int64_t n_layers = 12;            ///< transformer blocks
  double drop_rate = 0;                  ///< of all dropouts; 0: none
  bool qkv_bias = false;                 ///< whether queries, keys and values have a bias
  bool tie_weights = false;              ///< out_head uses tok_emb.weight
  nn::Init init = nn::Init::gpt2;        ///< of the first weights
  nn::Form attention = nn::Form::fused;  ///< how attention is computed
  nn::LayerMaker norm = nn::TransformerBlockConfig{}.norm;  ///< makes norm1, norm2 and final_norm
  nn::LayerMaker ff = nn::TransformerBlockConfig{}.ff;      ///< makes the ff of each block
};

/// ids [B, T] to logits [B, T, V]:
///
///     x = drop_emb(tok_emb(ids) + pos_emb(0 .. T - 1))     [B, T, C]
///     x = trf_blocks(x)
///     logits = out_head(final_norm(x))                     out_head has no bias
///
/// Parameters are named tok_emb.weight, trf_blocks.0.att.W_query.weight, ..., final_norm.scale,
/// out_head.weight. With the sizes of GPT-2 small there are 163,009,536 numbers, or with tied weights and
/// qkv_bias, as GPT-2 was published, 124,439,808.
class GptModel final : public Model {
 public:
  /// ValueError, before anything is allocated, when sizes do not fit. `seed` is that of the first weights.
  explicit GptModel(const GptConfig& config, std::uint64_t seed = 0);

  /// ShapeError unless ids are [B, T] with T at most context_length; IndexError for an id outside of the
  /// vocabulary.
  Tensor forward(const Ids& ids) override;

  std::int64_t vocab_size() const override { return tok_emb.weight.size(0); }
  std::int64_t context_length() const override { return pos_emb.weight.size(0); }

  nn::Embedding& tok_emb;      ///< tok_emb.weight [V, C]
  nn::Embedding& pos_emb;      ///< pos_emb.weight [context_length, C]
  nn::Dropout& drop_emb;       ///< after the sum of both
  nn::Sequential& trf_blocks;  ///< the blocks "0", "1", ...
  nn::Layer& final_norm;       ///< after the last block
  nn::Linear& out_head;        ///< [V, C], no bias
};

/// Reads the keys of a model of type gpt. ConfigError for what does not fit.
GptConfig read_gpt_config(io::Fields& fields, const ModelContext& context);

/// The row "gpt" of the registry.
std::unique_ptr<Model> make_gpt(io::Fields& fields, const ModelContext& context);

}  // namespace handgrad::models
