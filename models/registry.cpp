#include "handgrad/models/registry.h"

#include "handgrad/models/gpt.h"

namespace handgrad::models {

io::Registry<Model, const ModelContext&>& registry() {
  static io::Registry<Model, const ModelContext&> models(
      "model", "gpt", {{"gpt", make_gpt, "a decoder-only transformer, as in the book and GPT-2"}});
  return models;
}

}  // namespace handgrad::models
