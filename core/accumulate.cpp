#include "handgrad/core/accumulate.h"

#include "handgrad/core/kernels/table.h"
#include "handgrad/core/parallel.h"

namespace handgrad {

void accumulate(Array& destination, const Array& source) {
  dispatch(destination.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto kernel = kernels::table<T>().elementwise.accumulate;
    T* to = destination.mutable_data<T>();
    const T* from = source.data<T>();
    parallel_ranges(destination.numel(), grain_for(0.2), [&](std::int64_t begin, std::int64_t end) {
      kernel(to + begin, from + begin, end - begin);
    });
  });
}

}  // namespace handgrad
