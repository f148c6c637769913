#include "handgrad/core/tensor.h"

#include <algorithm>
#include <ostream>

#include "handgrad/core/error.h"

namespace handgrad {
namespace {

template <class T>
std::vector<T> joined(std::initializer_list<std::initializer_list<T>> rows, Shape& shape) {
  const std::size_t columns = rows.size() == 0 ? 0 : rows.begin()->size();
  std::vector<T> values;
  for (const auto& row : rows) {
    if (row.size() != columns)
      throw ShapeError("of", "rows must have one length, got " + std::to_string(columns) + " and " +
                                 std::to_string(row.size()));
    values.insert(values.end(), row.begin(), row.end());
  }
  shape = {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)};
  return values;
}

}  // namespace

Tensor Tensor::of(std::initializer_list<double> values, DType dtype) {
  return of(std::vector<double>(values), {static_cast<std::int64_t>(values.size())}, dtype);
}

Tensor Tensor::of(std::initializer_list<std::initializer_list<double>> rows, DType dtype) {
  Shape shape;
  const std::vector<double> values = joined(rows, shape);
  return of(values, shape, dtype);
}

Tensor Tensor::of(const std::vector<double>& values, const Shape& shape, DType dtype) {
  return constant(Array::of(values, shape, dtype));
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  return constant(Array::full(shape, value, dtype));
}

Tensor Tensor::constant(Array numbers) { return {std::move(numbers), Ref<GradSlot>()}; }

const Array& Tensor::grad() const {
  if (!has_grad())
    throw GraphError("grad", "this tensor has no gradient", {{"tensor", shape()}},
                     !needs_grad() ? "requires_grad() before the forward pass"
                     : has_node()
                         ? "retain_grad() before backward(): interior gradients are dropped after use"
                         : "backward() of a loss that depends on it");
  return slot_->grad;
}

void Tensor::zero_grad() {
  if (slot_) slot_->grad = Array();
}

void Tensor::retain_grad() {
  if (!needs_grad()) throw GraphError("retain_grad", "this tensor has no history", {{"tensor", shape()}});
  slot_->retain_grad = true;
}

void Tensor::on_grad(GradObserver observer) {
  if (!needs_grad()) throw GraphError("on_grad", "this tensor collects no gradient", {{"tensor", shape()}});
  if (!slot_->observers) slot_->observers = std::make_unique<std::vector<GradObserver>>();
  slot_->observers->push_back(std::move(observer));
}

void Tensor::backward(RetainGraph retain_graph) const {
  if (numel() != 1)
    throw ShapeError("backward", "the loss must be one number", {{"loss", shape()}},
                     "reduce it with sum() or mean(), or give the upstream gradient: backward(dy)");
  backward(Array::full(shape(), 1, dtype()), retain_graph);
}

const Node& Tensor::node() const {
  if (!has_node()) throw GraphError("node", "no recorded operation made this tensor", {{"tensor", shape()}});
  return *slot_->producer;
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << tensor.array(); }

Ids::Ids(const std::vector<std::int32_t>& ids, const Shape& shape) : array_(shape, DType::int32) {
  if (static_cast<std::int64_t>(ids.size()) != shape.numel())
    throw ShapeError("ids", "shape " + shape.text() + " needs " + std::to_string(shape.numel()) +
                                " ids, got " + std::to_string(ids.size()));
  std::copy(ids.begin(), ids.end(), array_.mutable_data<std::int32_t>());
}

Ids::Ids(const std::int32_t* ids, const Shape& shape) : array_(shape, DType::int32) {
  std::copy_n(ids, shape.numel(), array_.mutable_data<std::int32_t>());
}

Ids Ids::of(std::initializer_list<std::int32_t> ids) {
  return {std::vector<std::int32_t>(ids), {static_cast<std::int64_t>(ids.size())}};
}

Ids Ids::of(std::initializer_list<std::initializer_list<std::int32_t>> rows) {
  Shape shape;
  const std::vector<std::int32_t> ids = joined(rows, shape);
  return {ids, shape};
}

Ids Ids::from(Array int32_array) {
  if (int32_array.dtype() != DType::int32)
    throw DTypeError("ids", std::string("must be int32, got ") + name_of(int32_array.dtype()));
  Ids ids;
  ids.array_ = std::move(int32_array);
  return ids;
}

}  // namespace handgrad
