// cross_entropy: how surprised the model is by the actual next token, from its logits.
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
#include "handgrad/core/kernels/targets.h"

namespace handgrad::kernels {

template <class T>
struct LogSumExp {
  double* log_sum;  // of each row
  const T* logits;
  int64_t width;
};

/// dlogits = (softmax(logits) - one-hot of the target) * factor, or += when `add` is set; 0 in rows that are ignored.
/// log_sum is a double: as float32 its rounding would be a relative error of every probability.
template <class T>
struct CrossEntropyBackward {
  T* dlogits;
  bool add;
  const T* logits;
  const double* log_sum;
  const int32_t* targets;  // 0 .. width - 1, or ignored
  int32_t ignored;
  T factor;  // d loss / d (loss of one row)
  int64_t width;
};

}  // namespace handgrad::kernels

HANDGRAD_EACH_TARGET(template <class T>
                     void log_sum_exp_rows(const LogSumExp<T>& row, int64_t begin, int64_t end);
                     template <class T> void cross_entropy_backward(const CrossEntropyBackward<T>& loss,
                                                                    int64_t begin, int64_t end);)

#ifdef HANDGRAD_TARGET  // compiled once for each instruction set

#include "handgrad/core/kernels/sum_exp.h"

namespace handgrad::kernels::HANDGRAD_TARGET {

template <class T>
void log_sum_exp_rows(const LogSumExp<T>& of, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row)
    of.log_sum[row] = log_sum_exp(of.logits + row * of.width, of.width);
}

template <class T>
void cross_entropy_backward(const CrossEntropyBackward<T>& loss, int64_t begin, int64_t end) {
  const Vec<T> factor = set(loss.factor);
  for (int64_t row = begin; row < end; ++row) {
    const T* logits = loss.logits + row * loss.width;
    T* to = loss.dlogits + row * loss.width;
    if (loss.targets[row] == loss.ignored) {
      if (loss.add) continue;
      each<T>(
          loss.width, [&](int64_t i, auto lanes)
                          __attribute__((always_inline)) { store(to + i, set(T(0)), lanes); });
      continue;
    }
    const int64_t target = loss.targets[row];
    const double log_sum = loss.log_sum[row];
    const T before = loss.add ? to[target] : T(0);
    each<T>(
        loss.width, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          const Vec<T> r = exp(subtract(load(logits + i, lanes), log_sum)) * factor;
          store(to + i, loss.add ? load(to + i, lanes) + r : r, lanes);
        });
    const Vec<T> p = exp(subtract(set(logits[target]), log_sum));
    store(to + target, set(before) + (p - set(T(1))) * factor, first_lanes<T>(1));
  }
}

template void log_sum_exp_rows(const LogSumExp<float>&, int64_t, int64_t);
template void log_sum_exp_rows(const LogSumExp<double>&, int64_t, int64_t);
template void cross_entropy_backward(const CrossEntropyBackward<float>&, int64_t, int64_t);
template void cross_entropy_backward(const CrossEntropyBackward<double>&, int64_t, int64_t);

}  // namespace handgrad::kernels::HANDGRAD_TARGET

#else

#include <algorithm>

#include "handgrad/core/checks.h"
#include "handgrad/core/ops.h"
#include "handgrad/core/ops/rows.h"

namespace handgrad {
namespace {

double nanoseconds(std::int64_t width) { return 30 + 1.0 * static_cast<double>(width); }  // of a row

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

void backward(const Node& node, const Array& dy, GradSink& sink) {
  const Array& logits = node.saved("logits");
  const std::int64_t width = logits.shape().last();
  const GradSink::Target dlogits = sink.into(0);
  for_rows(logits, nanoseconds(width), HANDGRAD_ROWS(cross_entropy_backward), [&]<class T>() {
    return kernels::CrossEntropyBackward<T>{
        .dlogits = dlogits.array.template mutable_data<T>(),
        .add = dlogits.add,
        .logits = logits.data<T>(),
        .log_sum = node.saved("log_sum").data<double>(),
        .targets = node.saved("targets").data<std::int32_t>(),
        .ignored = static_cast<std::int32_t>(node.number("ignore_index")),
        .factor = static_cast<T>(dy.value(0) / node.number("divisor")),
        .width = width,
    };
  });
}

Tensor loss_of(const char* op, const Tensor& logits, const Ids& targets, double divisor,
               std::int32_t ignored) {
  const Array& x = logits.array();
  const std::int64_t width = x.shape().last();
  Array log_sum(targets.shape(), DType::float64);
  auto* sums = log_sum.mutable_data<double>();
  for_rows(x, nanoseconds(width), HANDGRAD_ROWS(log_sum_exp_rows), [&]<class T>() {
    return kernels::LogSumExp<T>{sums, x.data<T>(), width};
  });
  double total = 0;
  dispatch(x.dtype(), [&](auto zero) {
    const auto* numbers = x.data<decltype(zero)>();
    const std::int32_t* target = targets.data();
    for (std::int64_t i = 0; i < targets.numel(); ++i)
      if (target[i] != ignored) total += sums[i] - static_cast<double>(numbers[i * width + target[i]]);
  });
  return record(op, Array::full({}, total / divisor, x.dtype()), {logits},
                {{"logits", x}, {"targets", targets.array()}, {"log_sum", log_sum}}, backward,
                {{"divisor", divisor}, {"ignore_index", static_cast<double>(ignored)}});
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Ids& targets, std::int32_t ignore_index) {
  const std::int64_t counted = check("cross_entropy", logits, targets, ignore_index);
  return loss_of("cross_entropy", logits, targets, static_cast<double>(std::max<std::int64_t>(counted, 1)),
                 ignore_index);
}

Tensor cross_entropy_by_count(const Tensor& logits, const Ids& targets, double target_count,
                              std::int32_t ignore_index) {
  check("cross_entropy_by_count", logits, targets, ignore_index);
  if (!(target_count > 0)) [[unlikely]]
    checks::throw_value("cross_entropy_by_count", "target_count must be above 0", target_count,
                        {{"logits", logits.shape()}, {"targets", targets.shape()}});
  return loss_of("cross_entropy_by_count", logits, targets, target_count, ignore_index);
}

}  // namespace handgrad

#endif
