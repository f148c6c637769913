// rms_norm: every row is divided by its root mean square, then scaled feature by feature (Zhang and Sennrich, "Root
// mean square layer normalization", 2019). It is layer_norm without the mean and without the shift.
//
//   rstd = 1 / sqrt(sum(x^2) / C + eps)    xhat = x * rstd    y = scale * xhat
//
//   x, y [..., C]    scale [C]    rstd [..., 1], always float64
//
// Derivative, with g = dy * scale:
//
//   dx = rstd * (g - xhat * mean(g * xhat))    dscale = sum over rows(dy * xhat)
//
// A row of zeros with eps 0 gives NaN, as 0 / 0 does. Saved: x, scale, rstd; xhat is worked out again.
#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/kernels/table.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/row_sums.h"
#include "handgrad/core/ops/value_error.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

void check(const char* op, const Tensor& x, const Tensor& scale, double eps) {
  checks::common_type(op, {{"x", x}, {"scale", scale}});
  if (x.rank() == 0) [[unlikely]]
    throw ShapeError(op, "x must have at least one dimension, the features", {{"x", x.shape()}});
  if (scale.rank() != 1 || scale.size(0) != x.size(-1)) [[unlikely]]
    throw ShapeError(op,
                     "scale must have shape " + Shape({x.size(-1)}).text() +
                         ", the last dimension of x, got " + scale.shape().text(),
                     checks::shapes({{"x", x}, {"scale", scale}}));
  if (!(eps >= 0)) [[unlikely]]
    refuse_value(op, "eps must be at least 0", eps, checks::shapes({{"x", x}, {"scale", scale}}));
}

double nanoseconds_per_row(std::int64_t width) { return 20.0 + 0.3 * static_cast<double>(width); }

template <class T>
void forward(const Array& x, const Array& scale, double eps, Array& y, Array& rstd) {
  const std::int64_t width = x.shape().last();
  const kernels::NormForward<T> norm{
      .y = y.mutable_data<T>(),
      .mean = nullptr,
      .rstd = rstd.defined() ? rstd.mutable_data<double>() : nullptr,
      .x = x.data<T>(),
      .scale = scale.data<T>(),
      .shift = nullptr,
      .width = width,
      .eps = eps,
  };
  const auto& kernel = kernels::table<T>().norm_rows.rms_norm;
  parallel_ranges(x.shape().without_last().numel(), grain_for(nanoseconds_per_row(width)),
                  [&](std::int64_t begin, std::int64_t end) { kernel(norm, begin, end); });
}

template <class T>
void backward(const Node& node, const Array& dy, GradSink& sink) {
  const Array& x = node.saved("x");
  const std::int64_t width = x.shape().last();
  const RowParts parts(x.shape().without_last().numel(), nanoseconds_per_row(width));
  const RowSums dscale(parts, width, sink.wants(1));
  kernels::NormBackward<T> norm{
      .dx = nullptr,
      .add = false,
      .dscale = nullptr,
      .dshift = nullptr,
      .dy = dy.data<T>(),
      .x = x.data<T>(),
      .scale = node.saved("scale").data<T>(),
      .mean = nullptr,
      .rstd = node.saved("rstd").data<double>(),
      .width = width,
  };
  if (sink.wants(0)) {
    const GradSink::Target dx = sink.into(0);
    norm.dx = dx.array.mutable_data<T>();
    norm.add = dx.add;
  }
  const auto& kernel = kernels::table<T>().norm_rows.rms_norm_backward;
  parts.each([&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    kernels::NormBackward<T> rows = norm;
    rows.dscale = dscale.part(part);
    kernel(rows, begin, end);
  });
  if (dscale.wanted()) dscale.add_up<T>(sink.into(1));
}

void rms_norm_backward(const Node& node, const Array& dy, GradSink& sink) {
  dispatch(dy.dtype(), [&](auto zero) { backward<decltype(zero)>(node, dy, sink); });
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& scale, double eps) {
  check("rms_norm", x, scale, eps);
  Array y(x.shape(), x.dtype()), rstd;
  if (will_record({x, scale})) rstd = Array(x.shape().with_last(1), DType::float64);
  dispatch(x.dtype(), [&](auto zero) { forward<decltype(zero)>(x.array(), scale.array(), eps, y, rstd); });
  return record("rms_norm", std::move(y), {x, scale},
                {{"x", x.array()}, {"scale", scale.array()}, {"rstd", rstd}}, rms_norm_backward,
                {{"eps", eps}});
}

Tensor rms_norm_composed(const Tensor& x, const Tensor& scale, double eps) {
  check("rms_norm_composed", x, scale, eps);
  const Tensor root_mean_square = sqrt(mean(square(x), kLast, KeepDim::yes) + eps);
  return scale * (x / root_mean_square);
}

}  // namespace handgrad
