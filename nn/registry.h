// Registries: names that a config may give as "type", and who makes what they stand for. They are plain
// tables that start with the built-in types and that a program adds to before it reads a config:
//
//     std::unique_ptr<nn::Layer> make_my_norm(nn::Fields& fields, std::int64_t width) {
//       return std::make_unique<MyNorm>(width, fields.number("eps", {.doc = "added to the mean square",
//                                                                    .fallback = 1e-5, .at_least = 0}));
//     }
//     nn::norms().add("my_norm", make_my_norm);
//
// and {"norm": {"type": "my_norm", "eps": 1e-6}} is a config.
#pragma once

#include "handgrad/io/registry.h"
#include "handgrad/nn/module.h"

namespace handgrad::nn {

/// Norms for rows of a width: layer_norm (the default), rms_norm, none.
io::Registry<Layer, std::int64_t>& norms();

/// Feed-forward layers from and to a width: feed_forward (the default).
io::Registry<Layer, std::int64_t>& feed_forwards();

/// A maker of the layers that `fields` ask for, for models that need several. One of `width` is made at once
/// and dropped, so that what is wrong with the config comes up here.
LayerMaker maker(const io::Registry<Layer, std::int64_t>& registry, io::Fields fields, std::int64_t width);

}  // namespace handgrad::nn
