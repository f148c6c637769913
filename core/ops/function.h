// Functions of each element by itself, run by their kernels (core/kernels/pointwise.h), which also see to it that a
// zero upstream gradient stays zero.
#pragma once

#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/kernels/table.h"
#include "handgrad/core/parallel.h"

namespace handgrad {

/// What a function's derivative is computed from.
enum class Keep { x, y };

/// `Choose` picks the function: a captureless lambda from kernels::Pointwise<T> to kernels::Function<T>.
template <Keep kKept, class Choose>
void function_backward(const Node& node, const Array& dy, GradSink& sink) {
  const Array& kept = node.saved(kKept == Keep::x ? "x" : "y");
  const GradSink::Target into = sink.into(0);
  dispatch(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto kernel = Choose{}(kernels::table<T>().pointwise).backward;
    T* dx = into.array.mutable_data<T>();
    const T* upstream = dy.data<T>();
    const T* numbers = kept.data<T>();
    parallel_ranges(dy.numel(), grain_for(1), [&](std::int64_t begin, std::int64_t end) {
      kernel(dx + begin, upstream + begin, numbers + begin, end - begin, into.add);
    });
  });
}

/// y = f(x) of each element, recorded as `op`.
template <Keep kKept, class Choose>
Tensor function_of(const char* op, const Tensor& x, Choose choose) {
  checks::common_type(op, {{"x", x}});
  Array y = Array::like(x.array());
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto kernel = choose(kernels::table<T>().pointwise).forward;
    T* to = y.mutable_data<T>();
    const T* from = x.array().data<T>();
    parallel_ranges(x.numel(), grain_for(1), [&](std::int64_t begin, std::int64_t end) {
      kernel(to + begin, from + begin, end - begin);
    });
  });
  const Save kept = kKept == Keep::x ? Save("x", x.array()) : Save("y", y);
  return record(op, y, {x}, {kept}, function_backward<kKept, Choose>);
}

}  // namespace handgrad
