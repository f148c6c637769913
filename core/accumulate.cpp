#include "handgrad/core/accumulate.h"

#include "handgrad/core/parallel.h"

namespace handgrad {

void accumulate(Array& destination, const Array& source) {
  dispatch(destination.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* to = destination.mutable_data<T>();
    const T* from = source.data<T>();
    parallel_ranges(destination.numel(), grain_for(0.2), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] += from[i];
    });
  });
}

}  // namespace handgrad
