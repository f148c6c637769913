// The parameters of a model as a table.
#pragma once

#include <cstdint>
#include <string>

#include "handgrad/nn/module.h"

namespace handgrad::nn {

/// 163009536 as "163,009,536", whatever the locale.
std::string grouped(std::int64_t count);

/// One line for each parameter (tied ones once) and one for the sum:
///
///     parameter             shape    count  decay   in
///     tok_emb.weight     [33, 32]    1,056  yes     embedding
///     final_norm.scale       [32]       32  no      layer_norm
///     2 parameters                   1,088  of them 32 without decay
std::string summary(const Module& module);

}  // namespace handgrad::nn
