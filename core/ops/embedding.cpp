// embedding: a row of the table for every id.
//
//   y[..., :] = weight[id[...], :]        ids [...]    weight [V, C]    y [..., C]
//
// Derivative: row v of dweight is the sum of dy over all positions whose id is v. Workers share the columns, not the
// rows, so that every sum runs over the positions in order whatever their number. Saved: ids.
#include <algorithm>

#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

void check(const Ids& ids, const Tensor& weight) {
  checks::common_type("embedding", {{"weight", weight}});
  if (!ids.defined()) throw DTypeError("embedding", "ids are undefined");
  if (weight.rank() != 2)
    throw ShapeError("embedding", "weight must have two dimensions, [V, C], got " + weight.shape().text(),
                     {{"ids", ids.shape()}, {"weight", weight.shape()}});
  const std::int64_t rows = weight.size(0);
  const std::int32_t* id = ids.data();
  for (std::int64_t i = 0; i < ids.numel(); ++i)
    if (id[i] < 0 || id[i] >= rows) [[unlikely]]
      throw IndexError("embedding",
                       "id must lie in 0.." + std::to_string(rows - 1) + ", the table has " +
                           std::to_string(rows) + " rows, got " + std::to_string(id[i]) + " at position " +
                           std::to_string(i),
                       {{"ids", ids.shape()}, {"weight", weight.shape()}});
}

template <class T>
void gather(const Ids& ids, const Array& weight, Array& y) {
  const std::int64_t width = weight.shape().last();
  const std::int32_t* id = ids.data();
  const T* from = weight.data<T>();
  T* to = y.mutable_data<T>();
  parallel_ranges(ids.numel(), grain_for(5 + 0.2 * static_cast<double>(width)),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i)
                      std::copy_n(from + id[i] * width, width, to + i * width);
                  });
}

template <class T>
void scatter(const Array& ids, const Array& dy, GradSink::Target dweight) {
  if (!dweight.add) dweight.array.fill(0);
  const std::int64_t width = dweight.array.shape().last();
  const std::int64_t positions = ids.numel();
  const std::int32_t* id = ids.data<std::int32_t>();
  const T* from = dy.data<T>();
  T* to = dweight.array.template mutable_data<T>();
  // Whole lines of memory for each worker.
  const std::int64_t grain = (grain_for(0.3 * static_cast<double>(positions + 1)) + 15) / 16 * 16;
  parallel_ranges(width, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < positions; ++i) {
      T* const sum = to + id[i] * width;
      const T* const row = from + i * width;
      for (std::int64_t j = begin; j < end; ++j) sum[j] += row[j];
    }
  });
}

void embedding_backward(const Node& node, const Array& dy, GradSink& sink) {
  dispatch(dy.dtype(), [&](auto zero) { scatter<decltype(zero)>(node.saved("ids"), dy, sink.into(0)); });
}

}  // namespace

Tensor embedding(const Ids& ids, const Tensor& weight) {
  check(ids, weight);
  Shape shape = ids.shape();
  shape.push_back(weight.size(1));
  Array y(shape, weight.dtype());
  dispatch(weight.dtype(), [&](auto zero) { gather<decltype(zero)>(ids, weight.array(), y); });
  return record("embedding", std::move(y), {weight}, {{"ids", ids.array()}}, embedding_backward);
}

}  // namespace handgrad
