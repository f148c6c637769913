// GradSlot: where a tensor's gradient is collected, and the link to the operation that produced the tensor.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "handgrad/core/array.h"

namespace handgrad {

class Node;

/// Looks at a gradient that is complete; it must not change it.
using GradObserver = std::function<void(const Array& gradient)>;

/// Shared by all handles of one tensor, and by the operations that read it. It knows the tensor's shape but not
/// its numbers, so that a graph keeps alive only the numbers that some backward needs.
struct GradSlot {
  /// Of a tensor with this shape and type; there is no gradient yet.
  GradSlot(const Shape& of_shape, DType of_dtype);
  ~GradSlot();

  /// A slot in pooled memory.
  static Ref<GradSlot> make(const Shape& shape, DType dtype);
  static void destroy(GradSlot* slot) noexcept;  ///< for Ref

  std::uint32_t refs = 0;     ///< for Ref
  bool requires_grad = true;  ///< false: backward passes it by
  bool keep = false;          ///< an interior gradient is dropped after use unless this is set
  /// @{ The tensor's, and so the gradient's.
  DType dtype;
  Shape shape;
  /// @}
  std::uint64_t mark = 0;  ///< the backward pass that has seen this slot
  Array grad;              ///< undefined: no gradient, which is not the same as zeros
  Ref<Node> producer;      ///< none for a leaf
  std::unique_ptr<std::vector<GradObserver>> observers;  ///< nullptr: nobody looks
};

}  // namespace handgrad
