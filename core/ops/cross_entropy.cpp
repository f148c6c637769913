// cross_entropy: how surprised the model is by the token that came, from its logits.
//
//   loss of a row = -log softmax(logits)[target] = log(sum(exp(logits))) - logits[target]
//   loss = sum over rows that are not ignored / divisor        divisor: their number, or given
//
//   logits [..., V]    targets [...]
//
// Derivative:
//
//   dlogits = dy / divisor * (softmax(logits) - one_hot(target))        0 in rows that are ignored
//
// Rows and their sum are in double. With every target ignored the loss is 0, not 0 / 0, and so is the gradient.
// Saved: logits, targets, and log_sum = log(sum(exp(logits))) of each row in float64: from it backward needs one pass
// and one array, the gradient itself. A target whose logit is -inf costs inf.
#include <algorithm>

#include "handgrad/core/autograd.h"
#include "handgrad/core/checks.h"
#include "handgrad/core/kernels/table.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/log_sum_exp.h"
#include "handgrad/core/ops/value_error.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

std::int64_t grain_of_rows(std::int64_t width) { return grain_for(30 + 1.0 * static_cast<double>(width)); }

/// Checks the operands and returns the number of targets that count.
std::int64_t check(const char* op, const Tensor& logits, const Ids& targets, std::int32_t ignored) {
  checks::common_type(op, {{"logits", logits}});
  if (!targets.defined()) throw DTypeError(op, "targets are undefined: they hold no ids");
  if (logits.rank() == 0 || logits.shape().without_last() != targets.shape())
    throw ShapeError(
        op, "targets must have the shape of logits without its last dimension, got " + targets.shape().text(),
        {{"logits", logits.shape()}, {"targets", targets.shape()}});
  const std::int64_t classes = logits.size(-1);
  const std::int32_t* target = targets.data();
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < targets.numel(); ++i) {
    if (target[i] == ignored) continue;
    ++counted;
    if (target[i] < 0 || target[i] >= classes)
      throw IndexError(op,
                       "target must lie in 0.." + std::to_string(classes - 1) + " (or be " +
                           std::to_string(ignored) + ", ignored), got " + std::to_string(target[i]) +
                           " at position " + std::to_string(i),
                       {{"logits", logits.shape()}, {"targets", targets.shape()}});
  }
  return counted;
}

template <class T>
double sum_of_losses(const Array& logits, const Ids& targets, std::int32_t ignored, Array& log_sum) {
  const std::int64_t width = logits.shape().last();
  const T* x = logits.data<T>();
  double* sums = log_sum.mutable_data<double>();
  parallel_ranges(targets.numel(), grain_of_rows(width), [&](std::int64_t begin, std::int64_t end) {
    log_sum_exp(sums + begin, x + begin * width, end - begin, width);
  });
  const std::int32_t* target = targets.data();
  double total = 0;
  for (std::int64_t i = 0; i < targets.numel(); ++i)
    if (target[i] != ignored) total += sums[i] - static_cast<double>(x[i * width + target[i]]);
  return total;
}

template <class T>
void backward(const Node& node, const Array& dy, GradSink& sink) {
  const Array& logits = node.saved("logits");
  const double divisor = node.number("divisor");
  const GradSink::Target dlogits = sink.into(0);
  const kernels::CrossEntropyBackward<T> loss{
      .dlogits = dlogits.array.template mutable_data<T>(),
      .add = dlogits.add,
      .logits = logits.data<T>(),
      .log_sum = node.saved("log_sum").data<double>(),
      .targets = node.saved("targets").data<std::int32_t>(),
      .ignored = static_cast<std::int32_t>(node.number("ignore_index")),
      .factor = static_cast<T>(dy.value(0) / divisor),
      .width = logits.shape().last(),
  };
  const auto& kernel = kernels::table<T>().softmax_rows.cross_entropy_backward;
  parallel_ranges(logits.shape().without_last().numel(), grain_of_rows(loss.width),
                  [&](std::int64_t begin, std::int64_t end) { kernel(loss, begin, end); });
}

void cross_entropy_backward(const Node& node, const Array& dy, GradSink& sink) {
  dispatch(dy.dtype(), [&](auto zero) { backward<decltype(zero)>(node, dy, sink); });
}

Tensor loss_of(const char* op, const Tensor& logits, const Ids& targets, double divisor,
               std::int32_t ignored) {
  Array log_sum(targets.shape(), DType::float64);
  double loss = 0;
  dispatch(logits.dtype(), [&](auto zero) {
    loss = sum_of_losses<decltype(zero)>(logits.array(), targets, ignored, log_sum) / divisor;
  });
  return record(op, Array::full({}, loss, logits.dtype()), {logits},
                {{"logits", logits.array()}, {"targets", targets.array()}, {"log_sum", log_sum}},
                cross_entropy_backward,
                {{"divisor", divisor}, {"ignore_index", static_cast<double>(ignored)}});
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Ids& targets, std::int32_t ignore_index) {
  const std::int64_t counted = check("cross_entropy", logits, targets, ignore_index);
  return loss_of("cross_entropy", logits, targets, static_cast<double>(std::max<std::int64_t>(counted, 1)),
                 ignore_index);
}

Tensor cross_entropy_sum(const Tensor& logits, const Ids& targets, double divisor,
                         std::int32_t ignore_index) {
  check("cross_entropy_sum", logits, targets, ignore_index);
  if (!(divisor > 0))
    refuse_value("cross_entropy_sum", "divisor must be above 0", divisor,
                 {{"logits", logits.shape()}, {"targets", targets.shape()}});
  return loss_of("cross_entropy_sum", logits, targets, divisor, ignore_index);
}

}  // namespace handgrad
