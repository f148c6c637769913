// The parameters of a model as a table.
#pragma once

#include <string>

#include "handgrad/nn/module.h"

namespace handgrad::view {

/// One line for each parameter (tied ones once), or for those that differ in the number of their block alone, and one
/// for the sum:
///
///     parameter                      shape    count  decay   in
///     tok_emb.weight              [33, 32]    1,056  yes     embedding
///     trf_blocks.*.norm1.scale    [32] x 2       64  no      layer_norm
///     3 parameters                            1,120  of them 64 without decay
std::string summary(const nn::Module& module);

}  // namespace handgrad::view
