// The models that a config may name.
#pragma once

#include <cstdint>

#include "handgrad/models/model.h"
#include "handgrad/nn/registry.h"

namespace handgrad::models {

/// What a model's factory is told by the run it is part of.
struct ModelContext {
  std::int64_t vocab_size = 0;  ///< the tokenizer's, default of the key vocab_size; 0: not known
  std::uint64_t seed = 0;       ///< of the first weights
};

/// gpt (the default), and what a program adds. A factory that finds `fields.building()` false reads and
/// checks its keys and returns nullptr.
io::Registry<Model, const ModelContext&>& registry();

}  // namespace handgrad::models
