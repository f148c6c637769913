#include "handgrad/nn/registry.h"

#include "handgrad/nn/activation.h"
#include "handgrad/nn/layer_norm.h"
#include "handgrad/nn/transformer_block.h"

namespace handgrad::nn {
namespace {

template <class Norm>
std::unique_ptr<Layer> make_norm(io::Fields& fields, std::int64_t width) {
  const char* const doc = std::is_same_v<Norm, RMSNorm> ? "added to the mean square, under the root"
                                                        : "added to the variance, under the root";
  const double eps = fields.number("eps", {.doc = doc, .fallback = 1e-5, .at_least = 0});
  const bool composed = fields.boolean(
      "composed", {.doc = "from primitive operations, each of them visible in the graph", .fallback = false});
  return std::make_unique<Norm>(width, eps, composed ? Form::composed : Form::fused);
}

std::unique_ptr<Layer> make_none(io::Fields& /*fields*/, std::int64_t /*width*/) {
  return std::make_unique<Identity>();
}

std::unique_ptr<Layer> make_feed_forward(io::Fields& fields, std::int64_t width) {
  const auto hidden = fields.optional_integer(
      "hidden", {.doc = "width in the middle; 4 * emb_dim if not given", .at_least = 1});
  const std::string activation =
      fields.string("activation", {.doc = "the function between the two linear maps",
                                   .fallback = "gelu",
                                   .choices = activation_names(),
                                   .what = "activation"});
  if (!fields.building()) return nullptr;  // its matrices may be large
  return std::make_unique<FeedForward>(width, hidden.value_or(4 * width), activation);
}

}  // namespace

io::Registry<Layer, std::int64_t>& norms() {
  static io::Registry<Layer, std::int64_t> registry(
      "norm", "layer_norm",
      {{"layer_norm", make_norm<LayerNorm>, "each row with mean 0 and variance 1, then scale and shift"},
       {"rms_norm", make_norm<RMSNorm>, "each row divided by the root of its mean square, then scale"},
       {"none", make_none, "no norm, for comparison"}});
  return registry;
}

io::Registry<Layer, std::int64_t>& feed_forwards() {
  static io::Registry<Layer, std::int64_t> registry(
      "feed-forward", "feed_forward",
      {{"feed_forward", make_feed_forward, "two linear maps with an activation between them"}});
  return registry;
}

LayerMaker maker(const io::Registry<Layer, std::int64_t>& registry, io::Fields fields, std::int64_t width) {
  registry.make(fields, width);
  return [&registry, fields](std::int64_t of_width) mutable { return registry.make(fields, of_width); };
}

}  // namespace handgrad::nn
