// Check: the gradients of a user's model or layer against finite differences. What `handgrad check` does.
#pragma once

#include <cstdint>
#include <string>

#include "handgrad/core/gradcheck.h"
#include "handgrad/io/fields.h"
#include "handgrad/train/run.h"

namespace handgrad::train {

/// Every trainable parameter of a float64 run's model, through its logits on a few rows of its first batch, with random
/// upstream numbers. Vectors are moved off their first values beforehand, since scales of one and shifts of zero hide
/// mistakes; `keep_values` leaves them, for weights that were loaded. The model's values are put back in the end.
GradCheckReport check_model(const Run& run, const GradCheckOptions& options, bool keep_values = false);

/// A float64 layer: its input [2, 3, width], named "input", and its parameters, whose vectors are moved and stay so.
GradCheckReport check_layer(nn::Layer& layer, std::int64_t width, const GradCheckOptions& options);

/// A layer that `nn::norms()` or `nn::feed_forwards()` makes of `type`, its keys read from `fields`, of the given width.
/// ValueError, with what is known, for another type.
GradCheckReport check_layer(const std::string& type, io::Fields fields, std::int64_t width,
                            const GradCheckOptions& options);

}  // namespace handgrad::train
