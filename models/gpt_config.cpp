// How a GPT is described in a config, and the registry of models.
#include "handgrad/models/gpt.h"
#include "handgrad/nn/init.h"
#include "handgrad/nn/registry.h"

namespace handgrad::models {

GptConfig read_gpt_config(io::Fields& fields, const ModelContext& context) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  GptConfig config;
  io::IntegerKey vocab{
      .doc = "how many tokens there are; the tokenizer's if not given", .at_least = 1, .at_most = kMost};
  if (context.vocab_size > 0) vocab.fallback = context.vocab_size;
  config.vocab_size = context.vocab_size > 0 || fields.building()
                          ? fields.integer("vocab_size", vocab)
                          : fields.optional_integer("vocab_size", vocab).value_or(1);
  config.context_length = fields.integer(
      "context_length",
      {.doc = "the most tokens in a row that the model looks at", .at_least = 1, .at_most = kMost});
  config.emb_dim =
      fields.integer("emb_dim", {.doc = "numbers for each token", .at_least = 1, .at_most = kMost});
  config.n_heads = fields.integer(
      "n_heads",
      {.doc = "attention heads", .at_least = 1, .at_most = kMost, .divides = {"emb_dim", config.emb_dim}});
  config.n_layers =
      fields.integer("n_layers", {.doc = "transformer blocks", .at_least = 1, .at_most = kMost});
  config.drop_rate =
      fields.number("drop_rate", {.doc = "dropout after the embeddings, in attention and in shortcuts",
                                  .fallback = 0,
                                  .at_least = 0,
                                  .less_than = 1});
  config.qkv_bias =
      fields.boolean("qkv_bias", {.doc = "biases for queries, keys and values", .fallback = false});
  config.tie_weights = fields.boolean(
      "tie_weights", {.doc = "one matrix for token embedding and output head", .fallback = false});
  const std::string init =
      fields.string("init", {.doc = "first weights: PyTorch's defaults (book) or GPT-2's",
                             .fallback = "gpt2",
                             .choices = {"book", "gpt2"}});
  config.init = init == "book" ? nn::Init::book : nn::Init::gpt2;
  config.norm = nn::maker(nn::norms(), fields.object("norm", "norm1, norm2 and final_norm"), config.emb_dim);
  config.ff = nn::maker(nn::feed_forwards(), fields.object("ff", "the feed-forward layers"), config.emb_dim);
  return config;
}

std::unique_ptr<Model> make_gpt(io::Fields& fields, const ModelContext& context) {
  const GptConfig config = read_gpt_config(fields, context);
  if (!fields.building()) return nullptr;
  fields.finish();
  return std::make_unique<GptModel>(config);
}

io::Registry<Model, const ModelContext&>& registry() {
  static io::Registry<Model, const ModelContext&> models(
      "model", "gpt", {{"gpt", make_gpt, "a decoder-only transformer, as in the book and GPT-2"}});
  return models;
}

std::unique_ptr<Model> make(io::Fields& fields, const ModelContext& context,
                            std::optional<std::uint64_t> seed) {
  std::unique_ptr<Model> model;
  {
    const nn::DrawLater later;
    model = registry().make(fields, context);
  }
  if (model && seed) nn::draw(*model, *seed);
  return model;
}

}  // namespace handgrad::models
