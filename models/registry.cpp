#include "handgrad/models/registry.h"

#include "handgrad/models/gpt.h"
#include "handgrad/nn/init.h"

namespace handgrad::models {

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
