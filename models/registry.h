// The models that a config may name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "handgrad/models/model.h"
#include "handgrad/nn/registry.h"

namespace handgrad::models {

/// gpt (the default), and what a program adds. A factory that finds `fields.building()` false reads and
/// checks its keys and returns nullptr.
io::Registry<Model, const ModelContext&>& registry();

/// The model that `fields` name, with first weights drawn by `seed`; without a seed they are zeros, and a file
/// follows. nullptr when the factory only checked the keys.
std::unique_ptr<Model> make(io::Fields& fields, const ModelContext& context,
                            std::optional<std::uint64_t> seed = std::nullopt);

}  // namespace handgrad::models
