// Copies between a dense array and a view of another, described by a step for each dimension.
#pragma once

#include <cstdint>

#include "handgrad/core/shape.h"

namespace handgrad {

/// to[i0, i1, ...], dense and of shape `shape`, = from[i0 * steps[0] + i1 * steps[1] + ...]. A step of 0
/// repeats. Rows that lie together are copied at once, and a transpose goes through small squares, so that
/// memory is read and written in whole cache lines. T is float, double or int32_t.
template <class T>
void copy_view(T* to, const T* from, const Shape& shape, const Shape& steps);

/// The steps of a dense array: the last dimension's is 1.
Shape dense_steps(const Shape& shape);

}  // namespace handgrad
