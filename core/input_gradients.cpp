#include "handgrad/core/input_gradients.h"

#include <utility>

namespace handgrad {
namespace {

/// Puts the gradients of a node's inputs aside for a block, and back in its end.
class HeldGradients {
 public:
  explicit HeldGradients(const Node& node)
      : node_(node), held_(static_cast<std::size_t>(node.input_count())) {
    for (int i = 0; i < node.input_count(); ++i)
      if (GradSlot* input = slot(i)) std::swap(input->grad, held_[static_cast<std::size_t>(i)]);
  }
  // Backwards, since of an input that comes twice the first place holds the gradient.
  ~HeldGradients() {
    for (int i = node_.input_count() - 1; i >= 0; --i)
      if (GradSlot* input = slot(i)) input->grad = std::move(held_[static_cast<std::size_t>(i)]);
  }
  HeldGradients(const HeldGradients&) = delete;
  HeldGradients& operator=(const HeldGradients&) = delete;

  GradSlot* slot(int i) const { return const_cast<GradSlot*>(node_.input(i)); }

 private:
  const Node& node_;
  std::vector<Array> held_;
};

}  // namespace

std::vector<Array> input_gradients(const Node& node, const Array& dy) {
  const HeldGradients held(node);
  GradSink sink(node);
  node.run(dy, sink);
  std::vector<Array> given;
  for (int i = 0; i < node.input_count(); ++i) {
    GradSlot* input = held.slot(i);
    given.push_back(input != nullptr ? std::exchange(input->grad, Array()) : Array());
  }
  return given;
}

}  // namespace handgrad
