// layer_norm: every row is moved to mean 0 and variance 1, then scaled and shifted feature by feature.
//
//   mean = sum(x) / C    var = sum((x - mean)^2) / C    rstd = 1 / sqrt(var + eps)
//   xhat = (x - mean) * rstd    y = scale * xhat + shift
//
//   x, y [..., C]    scale, shift [C]    mean, rstd [..., 1], always float64
//
// The variance is biased (divides by C, as in the book and in GPT-2) and takes two passes, the mean first: the
// difference of mean(x^2) and mean^2 loses every digit when the mean is large. x - mean comes before the product
// with rstd, so that a row of equal numbers gives exactly the shift.
//
// Derivative, with g = dy * scale (what reaches the normalized numbers):
//
//   dx = rstd * (g - mean(g) - xhat * mean(g * xhat))    dscale = sum over rows(dy * xhat)    dshift = sum over rows(dy)
//
// The two means are taken off because x also moves its row's mean and variance. A row whose variance and eps are both
// 0 has no normalized form: 0 / 0 gives NaN, there and only there.
//
// Saved: x, scale, mean, rstd. xhat is worked out again: keeping it would take as much memory as x.
#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/kernels/table.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/row_sums.h"
#include "handgrad/core/ops/value_error.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

void check(const char* op, const Tensor& x, const Tensor& scale, const Tensor& shift, double eps) {
  checks::common_type(op, {{"x", x}, {"scale", scale}, {"shift", shift}});
  if (x.rank() == 0) [[unlikely]]
    throw ShapeError(op, "x must have at least one dimension, the features", {{"x", x.shape()}});
  for (const checks::Named& operand : {checks::Named{"scale", scale}, checks::Named{"shift", shift}}) {
    if (operand.tensor.rank() == 1 && operand.tensor.size(0) == x.size(-1)) continue;
    throw ShapeError(op,
                     std::string(operand.name) + " must have shape " + Shape({x.size(-1)}).text() +
                         ", the last dimension of x, got " + operand.tensor.shape().text(),
                     checks::shapes({{"x", x}, {"scale", scale}, {"shift", shift}}));
  }
  if (!(eps >= 0)) [[unlikely]]
    refuse_value(op, "eps must be at least 0", eps,
                 checks::shapes({{"x", x}, {"scale", scale}, {"shift", shift}}));
}

double nanoseconds_per_row(std::int64_t width) { return 20.0 + 0.3 * static_cast<double>(width); }

template <class T>
void forward(const Array& x, const Array& scale, const Array& shift, double eps, Array& y, Array& mean,
             Array& rstd) {
  const std::int64_t width = x.shape().last();
  const kernels::NormForward<T> norm{
      .y = y.mutable_data<T>(),
      .mean = mean.defined() ? mean.mutable_data<double>() : nullptr,
      .rstd = rstd.defined() ? rstd.mutable_data<double>() : nullptr,
      .x = x.data<T>(),
      .scale = scale.data<T>(),
      .shift = shift.data<T>(),
      .width = width,
      .eps = eps,
  };
  const auto& kernel = kernels::table<T>().norm_rows.layer_norm;
  parallel_ranges(x.shape().without_last().numel(), grain_for(nanoseconds_per_row(width)),
                  [&](std::int64_t begin, std::int64_t end) { kernel(norm, begin, end); });
}

template <class T>
void backward(const Node& node, const Array& dy, GradSink& sink) {
  const Array& x = node.saved("x");
  const std::int64_t width = x.shape().last();
  const RowParts parts(x.shape().without_last().numel(), nanoseconds_per_row(width));
  const RowSums dscale(parts, width, sink.wants(1));
  const RowSums dshift(parts, width, sink.wants(2));
  kernels::NormBackward<T> norm{
      .dx = nullptr,
      .add = false,
      .dscale = nullptr,
      .dshift = nullptr,
      .dy = dy.data<T>(),
      .x = x.data<T>(),
      .scale = node.saved("scale").data<T>(),
      .mean = node.saved("mean").data<double>(),
      .rstd = node.saved("rstd").data<double>(),
      .width = width,
  };
  if (sink.wants(0)) {
    const GradSink::Target dx = sink.into(0);
    norm.dx = dx.array.mutable_data<T>();
    norm.add = dx.add;
  }
  const auto& kernel = kernels::table<T>().norm_rows.layer_norm_backward;
  parts.each([&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    kernels::NormBackward<T> rows = norm;
    rows.dscale = dscale.part(part);
    rows.dshift = dshift.part(part);
    kernel(rows, begin, end);
  });
  if (dscale.wanted()) dscale.add_up<T>(sink.into(1));
  if (dshift.wanted()) dshift.add_up<T>(sink.into(2));
}

void layer_norm_backward(const Node& node, const Array& dy, GradSink& sink) {
  dispatch(dy.dtype(), [&](auto zero) { backward<decltype(zero)>(node, dy, sink); });
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& shift, double eps) {
  check("layer_norm", x, scale, shift, eps);
  Array y(x.shape(), x.dtype()), mean, rstd;
  if (will_record({x, scale, shift})) {
    mean = Array(x.shape().with_last(1), DType::float64);
    rstd = Array(x.shape().with_last(1), DType::float64);
  }
  dispatch(x.dtype(), [&](auto zero) {
    forward<decltype(zero)>(x.array(), scale.array(), shift.array(), eps, y, mean, rstd);
  });
  return record("layer_norm", std::move(y), {x, scale, shift},
                {{"x", x.array()}, {"scale", scale.array()}, {"mean", mean}, {"rstd", rstd}},
                layer_norm_backward, {{"eps", eps}});
}

Tensor layer_norm_composed(const Tensor& x, const Tensor& scale, const Tensor& shift, double eps) {
  check("layer_norm_composed", x, scale, shift, eps);
  const Tensor centered = x - mean(x, kLast, KeepDim::yes);
  const Tensor variance = mean(square(centered), kLast, KeepDim::yes);
  const Tensor deviation = sqrt(variance + eps);
  const Tensor normalized = centered / deviation;
  return scale * normalized + shift;
}

}  // namespace handgrad
