// Tensor: numbers with a place for their gradient, and the link to the operation that produced them.
#pragma once

#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <vector>

#include "handgrad/core/array.h"

namespace handgrad {

class Node;

/// Sees a complete gradient; must not change it.
using GradObserver = std::function<void(const Array& gradient)>;

/// Shared by all handles of one tensor, and by the operations that read it. It knows the tensor's shape but not
/// its numbers, so that a graph keeps alive only the numbers that some backward needs.
struct GradSlot {
  /// For a tensor with this shape and type; no gradient yet.
  GradSlot(const Shape& of_shape, DType of_dtype);
  ~GradSlot();

  /// A slot in pooled memory.
  static Ref<GradSlot> make(const Shape& shape, DType dtype);
  static void destroy(GradSlot* slot) noexcept;  ///< for Ref

  std::uint32_t refs = 0;     ///< for Ref
  bool requires_grad = true;  ///< false: backward skips it
  bool retain_grad = false;   ///< an interior gradient is dropped after use unless this is set
  /// @{ The tensor's, and so the gradient's.
  DType dtype;
  Shape shape;
  /// @}
  std::uint64_t mark = 0;  ///< the backward pass that has seen this slot
  Array grad;              ///< undefined: no gradient, which is not the same as zeros
  Ref<Node> producer;      ///< none for a leaf
  std::unique_ptr<std::vector<GradObserver>> observers;  ///< nullptr: none
};

/// Whether backward leaves the recorded graph usable for another pass.
enum class RetainGraph { no, yes };

/// A handle to an Array and to its gradient slot; copies share both. The result of an operation on tensors
/// with gradients carries its history; one made from values has none until `requires_grad()`.
class Tensor {
 public:
  Tensor() = default;  ///< no tensor at all: `defined()` is false

  /// Values: `Tensor::of({2, 2, 6, 6})` is four numbers, shape [4]; nested lists give shape [rows, columns].
  static Tensor of(std::initializer_list<double> values, DType dtype = DType::float32);
  /// @{ Rows of one length, or values in row-major order for any shape. ShapeError when the counts do not fit.
  static Tensor of(std::initializer_list<std::initializer_list<double>> rows, DType dtype = DType::float32);
  static Tensor of(const std::vector<double>& values, const Shape& shape, DType dtype = DType::float32);
  /// @}
  /// Shapes: `Tensor::zeros({2, 4, 768})` has 6144 numbers.
  static Tensor zeros(const Shape& shape, DType dtype = DType::float32) { return full(shape, 0, dtype); }
  /// @{ Every number is the same one.
  static Tensor ones(const Shape& shape, DType dtype = DType::float32) { return full(shape, 1, dtype); }
  static Tensor full(const Shape& shape, double value, DType dtype = DType::float32);
  /// @}
  /// Shape [].
  static Tensor scalar(double value, DType dtype = DType::float32) { return full({}, value, dtype); }
  /// Numbers without history. Never the result of an operation: record() and no_gradient() make those.
  static Tensor constant(Array numbers);

  bool defined() const { return array_.defined(); }  ///< false: no tensor at all
  /// @{ Of its array. size() takes negative dimensions, which count from the end.
  const Shape& shape() const { return array_.shape(); }
  std::int64_t size(int dim) const { return array_.shape().at(dim); }
  int rank() const { return array_.rank(); }
  std::int64_t numel() const { return array_.numel(); }
  DType dtype() const { return array_.dtype(); }
  /// @}

  const Array& array() const { return array_; }  ///< the numbers, to read
  /// The numbers, to change in place: a new version, which operations that saved them notice.
  Array& mutable_array() { return array_; }
  double item() const { return array_.item(); }  ///< the single number; ShapeError unless there is one
  /// All numbers as doubles, in row-major order.
  std::vector<double> values() const { return array_.values(); }

  /// Makes a leaf collect a gradient, or stop doing so. GraphError on the result of an operation.
  Tensor& requires_grad(bool on = true);
  /// Whether backward reaches it: a leaf that collects a gradient, or a result that depends on one.
  bool needs_grad() const { return slot_ && slot_->requires_grad; }

  bool has_grad() const { return slot_ && slot_->grad.defined(); }  ///< whether grad() would return one
  /// The gradient collected so far; GraphError when there is none (has_grad tells).
  const Array& grad() const;
  /// Leaves "no gradient", which optimizers skip; zeros would be a gradient.
  void zero_grad();
  /// Keeps this tensor's gradient after backward although it is not a leaf.
  void retain_grad();
  /// `observer` sees this tensor's gradient each time a backward pass has completed it.
  void on_grad(GradObserver observer);

  /// Gradients of this one number with respect to every leaf that it depends on, added to what the leaves hold.
  /// ShapeError unless there is exactly one element; GraphError without history, or when the graph was used before.
  void backward(RetainGraph retain_graph = RetainGraph::no) const;
  /// The same for any shape, from the upstream gradient `dy` of this tensor's shape.
  void backward(const Array& dy, RetainGraph retain_graph = RetainGraph::no) const;

  /// The operation that made this tensor: its name, what it saved, its inputs. GraphError when there is none.
  const Node& node() const;
  /// Whether it is the result of an operation with history.
  bool has_node() const { return slot_ && slot_->producer; }

  /// The same numbers without history: the gradient stops here, silently.
  Tensor detach() const { return constant(array_); }

  /// For record() and the engine.
  Tensor(Array numbers, Ref<GradSlot> slot) : array_(std::move(numbers)), slot_(std::move(slot)) {}
  GradSlot* slot() const { return slot_.get(); }  ///< nullptr when it never wanted a gradient

 protected:
  Array array_;         ///< the numbers
  Ref<GradSlot> slot_;  ///< where the gradient is collected; none when it never wanted one
};

/// Prints the numbers.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// Token ids or class numbers: int32, any shape, never differentiated.
class Ids {
 public:
  Ids() = default;
  /// @{ Ids in row-major order, as many as the shape has; a list; rows of one length; an int32 array as it is.
  Ids(const std::vector<std::int32_t>& ids, const Shape& shape);
  Ids(const std::int32_t* ids, const Shape& shape);
  static Ids of(std::initializer_list<std::int32_t> ids);
  static Ids of(std::initializer_list<std::initializer_list<std::int32_t>> rows);
  static Ids from(Array int32_array);
  /// @}

  bool defined() const { return array_.defined(); }  ///< false: no ids at all
  /// @{ Of its array. size() takes negative dimensions.
  const Shape& shape() const { return array_.shape(); }
  std::int64_t size(int dim) const { return array_.shape().at(dim); }
  std::int64_t numel() const { return array_.numel(); }
  /// @}
  /// @{ The ids, to read.
  const Array& array() const { return array_; }
  const std::int32_t* data() const { return array_.data<std::int32_t>(); }
  /// @}
  /// @{ The same ids under another shape, shared.
  Ids reshape(const Shape& shape) const { return from(array_.reshape(shape)); }
  Ids flatten() const { return reshape({-1}); }
  /// @}
  std::vector<std::int32_t> values() const { return {data(), data() + numel()}; }  ///< in row-major order

 private:
  Array array_;
};

}  // namespace handgrad
