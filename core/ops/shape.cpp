// Operations that move numbers without changing them.
//
//   reshape, flatten, squeeze, unsqueeze   the same numbers under another shape; dx = dy under x's shape
//   permute, transpose                     y[i_order[0], ...] = x[i_0, ...]; dx = dy with the inverse order
//   slice                                  part of x; dx = dy in that part, 0 elsewhere
//   concat, stack                          parts of y; each d part = its part of dy
//   expand                                 repeats x; dx = dy summed over what was repeated
//
// Backward needs no numbers of the operands, so none are saved.
#include <algorithm>

#include "handgrad/core/autograd.h"
#include "handgrad/core/broadcast.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/walk.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

/// Copies `rows` rows of n elements, from_step and to_step apart; with `add` it adds them.
template <class T>
void copy_block(T* to, std::int64_t to_step, const T* from, std::int64_t from_step, std::int64_t rows,
                std::int64_t n, bool add = false) {
  if (n == 0) return;
  const double row_cost = static_cast<double>(n) * sizeof(T) * 0.1 + 1;
  parallel_ranges(rows, grain_for(row_cost), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      T* row = to + r * to_step;
      const T* source = from + r * from_step;
      if (add) {
        for (std::int64_t i = 0; i < n; ++i) row[i] += source[i];
      } else {
        std::copy_n(source, n, row);
      }
    }
  });
}

/// The numbers of x from position `first` on, with these steps along the dimensions of `shape` (see copy_view).
Array copied(const Array& x, std::int64_t first, const Shape& shape, const Shape& steps) {
  Array y(shape, x.dtype());
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    copy_view(y.mutable_data<T>(), x.data<T>() + first, shape, steps);
  });
  return y;
}

// ---- The same numbers under another shape

void reshape_backward(const Node& node, const Array& dy, GradSink& sink) {
  sink.move(0, dy.reshape(node.input(0)->shape));
}

Tensor reshaped(const char* op, const Tensor& x, const Shape& shape) {
  return record(op, x.array().reshape(shape), {x}, {}, reshape_backward);
}

// ---- permute

Array permuted(const Array& x, const Shape& order) {
  const Shape x_steps = dense_steps(x.shape());
  Shape shape = order, steps = order;
  for (int i = 0; i < order.rank(); ++i) {
    shape[i] = x.shape().at(static_cast<int>(order[i]));
    steps[i] = x_steps.at(static_cast<int>(order[i]));
  }
  return copied(x, 0, shape, steps);
}

void permute_backward(const Node& node, const Array& dy, GradSink& sink) {
  const Shape& order = node.list("order");
  Shape inverse = order;
  for (int i = 0; i < order.rank(); ++i) inverse[static_cast<int>(order[i])] = i;
  sink.move(0, permuted(dy, inverse));
}

Tensor permuted(const char* op, const Tensor& x, const Shape& order) {
  return record(op, permuted(x.array(), order), {x}, {}, permute_backward, {{"order", order}});
}

// ---- slice

void slice_backward(const Node& node, const Array& dy, GradSink& sink) {
  const int dim = static_cast<int>(node.number("dim"));
  const auto begin = static_cast<std::int64_t>(node.number("begin"));
  const GradSink::Target dx = sink.into(0);
  const std::int64_t inner = dy.shape().numel(dim + 1, dy.rank());
  const std::int64_t row = dx.array.shape()[dim] * inner;
  if (!dx.add) dx.array.fill(0);
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    copy_block(dx.array.mutable_data<T>() + begin * inner, row, dy.data<T>(), dy.shape()[dim] * inner,
               dy.shape().numel(0, dim), dy.shape()[dim] * inner, dx.add);
  });
}

/// A position along a dimension of `size`, counted from 0; the end itself is a position.
std::int64_t checked_position(const Tensor& x, int dim, const char* name, std::int64_t position) {
  const std::int64_t size = x.shape()[dim];
  if (position < -size || position > size)
    throw IndexError("slice",
                     std::string(name) + " must lie in " + std::to_string(-size) + ".." +
                         std::to_string(size) + ", the size of dimension " + std::to_string(dim) + ", got " +
                         std::to_string(position),
                     {{"x", x.shape()}});
  return position < 0 ? position + size : position;
}

// ---- concat and stack: the parts as matrices [rows, width], side by side

void join_backward(const Node& node, const Array& dy, GradSink& sink) {
  const double* ends = node.saved("ends").data<double>();
  const auto rows = static_cast<std::int64_t>(node.number("rows"));
  const auto width = static_cast<std::int64_t>(ends[node.input_count() - 1]);
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int i = 0; i < node.input_count(); ++i) {
      if (!sink.wants(i)) continue;
      const auto begin = i == 0 ? 0 : static_cast<std::int64_t>(ends[i - 1]);
      const std::int64_t n = static_cast<std::int64_t>(ends[i]) - begin;
      const GradSink::Target part = sink.into(i);
      copy_block(part.array.mutable_data<T>(), n, dy.data<T>() + begin, width, rows, n, part.add);
    }
  });
}

Tensor joined(const char* op, const std::vector<Tensor>& parts, const Shape& shape, std::int64_t rows) {
  Array y(shape, parts[0].dtype());
  Array ends({static_cast<std::int64_t>(parts.size())},
             DType::float64);  // where each part ends in a row of y
  const std::int64_t width = rows == 0 ? 0 : y.numel() / rows;
  dispatch(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::int64_t begin = 0;
    double* end = ends.mutable_data<double>();
    for (const Tensor& part : parts) {
      const std::int64_t n = rows == 0 ? 0 : part.numel() / rows;
      copy_block(y.mutable_data<T>() + begin, width, part.array().data<T>(), n, rows, n);
      begin += n;
      *end++ = static_cast<double>(begin);
    }
  });
  const Scratch memory(parts.size() * sizeof(Input));
  auto* inputs = memory.as<Input>();
  std::uninitialized_copy(parts.begin(), parts.end(), inputs);
  return record(op, std::move(y), ListView<Input>(inputs, parts.size()), {{"ends", ends}}, join_backward,
                {{"rows", static_cast<double>(rows)}});
}

std::vector<Operand> operands(const std::vector<Tensor>& parts) {
  std::vector<Operand> all;
  for (std::size_t i = 0; i < parts.size(); ++i)
    all.emplace_back("part " + std::to_string(i), parts[i].shape());
  return all;
}

/// Parts must have one type and the first part's shape, except in dimension `free` (-1: none).
void check_parts(const char* op, const std::vector<Tensor>& parts, int free) {
  const Tensor& first = parts[0];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Tensor& part = parts[i];
    const std::string name = "part " + std::to_string(i);
    checks::common_type(op, {{"part 0", first}, {name.c_str(), part}});
    if (part.rank() != first.rank())
      throw ShapeError(op,
                       name + " must have " + std::to_string(first.rank()) +
                           " dimensions, as part 0 has, got " + std::to_string(part.rank()),
                       operands(parts));
    for (int d = 0; d < first.rank(); ++d)
      if (d != free && part.shape()[d] != first.shape()[d])
        throw ShapeError(op,
                         name + " must have size " + std::to_string(first.shape()[d]) + " in dimension " +
                             std::to_string(d) + ", as part 0 has, got " + std::to_string(part.shape()[d]),
                         operands(parts));
  }
}

void check_any(const char* op, const std::vector<Tensor>& parts) {
  if (parts.empty()) throw ShapeError(op, "there must be at least one part, got none");
  checks::common_type(op, {{"part 0", parts[0]}});
}

/// The position of a new dimension: -rank - 1 .. rank.
int new_dimension(const char* op, int dim, const Tensor& x) {
  const int rank = x.rank();
  if (dim < -rank - 1 || dim > rank)
    checks::throw_shape(op,
                        "the new dimension must lie in " + std::to_string(-rank - 1) + ".." +
                            std::to_string(rank) + ", got " + std::to_string(dim),
                        {{"x", x}});
  return dim < 0 ? dim + rank + 1 : dim;
}

Shape with_dimension(const Shape& shape, int dim, std::int64_t size) {
  Shape result;
  for (int i = 0; i <= shape.rank(); ++i) {
    if (i == dim) result.push_back(size);
    if (i < shape.rank()) result.push_back(shape[i]);
  }
  return result;
}

// ---- expand

void expand_backward(const Node&, const Array& dy, GradSink& sink) { sum_to_shape(dy, sink.into(0)); }

/// The result's shape; ShapeError when x does not repeat to it.
Shape expanded_shape(const Tensor& x, const Shape& wanted) {
  Shape shape = wanted;
  const int missing = wanted.rank() - x.rank();
  bool ok = missing >= 0;
  for (int i = 0; ok && i < wanted.rank(); ++i) {
    const std::int64_t size = i < missing ? 1 : x.shape()[i - missing];
    if (wanted[i] == -1 && i >= missing) shape[i] = size;
    ok = shape[i] >= 0 && (shape[i] == size || size == 1);
  }
  if (!ok)
    checks::throw_shape(
        "expand", "shape must keep the sizes of x other than 1, aligned at the end, got " + wanted.text(),
        {{"x", x}});
  return shape;
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  checks::common_type("reshape", {{"x", x}});
  return reshaped("reshape", x, shape);
}

Tensor flatten(const Tensor& x, int first, int last) {
  checks::common_type("flatten", {{"x", x}});
  if (x.rank() == 0 && (first == 0 || first == -1) && (last == 0 || last == -1))
    return reshaped("flatten", x, {1});
  const int a = checks::dimension("flatten", first, x), b = checks::dimension("flatten", last, x);
  if (a > b)
    checks::throw_shape(
        "flatten",
        "first must not come after last, got " + std::to_string(first) + " and " + std::to_string(last),
        {{"x", x}});
  Shape shape;
  for (int i = 0; i < a; ++i) shape.push_back(x.shape()[i]);
  shape.push_back(x.shape().numel(a, b + 1));
  for (int i = b + 1; i < x.rank(); ++i) shape.push_back(x.shape()[i]);
  return reshaped("flatten", x, shape);
}

Tensor squeeze(const Tensor& x, int dim) {
  checks::common_type("squeeze", {{"x", x}});
  const int d = checks::dimension("squeeze", dim, x);
  if (x.shape()[d] != 1)
    checks::throw_shape(
        "squeeze",
        "dimension " + std::to_string(dim) + " must have size 1, got " + std::to_string(x.shape()[d]),
        {{"x", x}});
  Shape shape;
  for (int i = 0; i < x.rank(); ++i)
    if (i != d) shape.push_back(x.shape()[i]);
  return reshaped("squeeze", x, shape);
}

Tensor unsqueeze(const Tensor& x, int dim) {
  checks::common_type("unsqueeze", {{"x", x}});
  return reshaped("unsqueeze", x, with_dimension(x.shape(), new_dimension("unsqueeze", dim, x), 1));
}

Tensor permute(const Tensor& x, const Dims& order) {
  checks::common_type("permute", {{"x", x}});
  Shape checked = order;
  bool seen[Shape::kMaxRank] = {};
  bool ok = order.rank() == x.rank();
  for (int i = 0; ok && i < order.rank(); ++i) {
    const int dim = checks::dimension("permute", static_cast<int>(order[i]), x);
    ok = !seen[dim];
    seen[dim] = true;
    checked[i] = dim;
  }
  if (!ok)
    checks::throw_shape("permute",
                        "order must name each of the " + std::to_string(x.rank()) +
                            " dimensions of x once, got " + order.text(),
                        {{"x", x}});
  return permuted("permute", x, checked);
}

Tensor transpose(const Tensor& x, int a, int b) {
  checks::common_type("transpose", {{"x", x}});
  const int first = checks::dimension("transpose", a, x), second = checks::dimension("transpose", b, x);
  Shape order;
  for (int i = 0; i < x.rank(); ++i) order.push_back(i == first ? second : i == second ? first : i);
  return permuted("transpose", x, order);
}

Tensor slice(const Tensor& x, int dim, std::int64_t begin, std::int64_t end) {
  checks::common_type("slice", {{"x", x}});
  const int d = checks::dimension("slice", dim, x);
  const std::int64_t first = checked_position(x, d, "begin", begin),
                     last = checked_position(x, d, "end", end);
  if (first > last)
    throw IndexError("slice",
                     "begin must not come after end, got " + std::to_string(begin) + " and " +
                         std::to_string(end) + " in dimension " + std::to_string(d),
                     {{"x", x.shape()}});
  Shape shape = x.shape();
  shape[d] = last - first;
  const Shape steps = dense_steps(x.shape());
  return record("slice", copied(x.array(), first * steps[d], shape, steps), {x}, {}, slice_backward,
                {{"dim", static_cast<double>(d)}, {"begin", static_cast<double>(first)}});
}

Tensor concat(const std::vector<Tensor>& parts, int dim) {
  check_any("concat", parts);
  const int d = checks::dimension("concat", dim, parts[0]);
  check_parts("concat", parts, d);
  Shape shape = parts[0].shape();
  shape[d] = 0;
  for (const Tensor& part : parts) shape[d] += part.shape()[d];
  return joined("concat", parts, shape, shape.numel(0, d));
}

Tensor stack(const std::vector<Tensor>& parts, int dim) {
  check_any("stack", parts);
  const int d = new_dimension("stack", dim, parts[0]);
  check_parts("stack", parts, -1);
  const Shape shape = with_dimension(parts[0].shape(), d, static_cast<std::int64_t>(parts.size()));
  return joined("stack", parts, shape, shape.numel(0, d));
}

Tensor expand(const Tensor& x, const Shape& shape) {
  checks::common_type("expand", {{"x", x}});
  const Shape result = expanded_shape(x, shape);
  const Shape x_steps = dense_steps(x.shape());
  const int missing = result.rank() - x.rank();
  Shape steps = result;
  for (int i = 0; i < result.rank(); ++i)
    steps[i] = i < missing || x.shape()[i - missing] != result[i] ? 0 : x_steps[i - missing];
  return record("expand", copied(x.array(), 0, result, steps), {x}, {}, expand_backward);
}

}  // namespace handgrad
