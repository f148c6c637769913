// Form: how a layer computes what it computes.
#pragma once

namespace handgrad::nn {

/// Several operations have two forms with equal numbers: fused, one operation with its derivative,
/// and composed, written from primitive operations as the book does, so that each intermediate result can be
/// looked at.
enum class Form { fused, composed };

}  // namespace handgrad::nn
