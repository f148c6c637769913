// The parameters of a model as a table.
#pragma once

#include <cstdint>
#include <string>

#include "handgrad/nn/module.h"

namespace handgrad::nn {

/// 163009536 as "163,009,536", whatever the locale.
std::string grouped(std::int64_t count);

/// One line for each parameter (tied ones once), or for those that differ in the number of their block alone, and one
/// for the sum:
///
///     parameter                      shape    count  decay   in
///     tok_emb.weight              [33, 32]    1,056  yes     embedding
///     trf_blocks.*.norm1.scale    [32] x 2       64  no      layer_norm
///     3 parameters                            1,120  of them 64 without decay
std::string summary(const Module& module);

}  // namespace handgrad::nn
