// bench op: the cost of an operation beyond its arithmetic, on tensors so small that the arithmetic is nothing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include <nlohmann/json.hpp>

#include "handgrad/core/autograd.h"

#include "handgrad/cli/bench.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/ops.h"
#include "handgrad/view/table.h"

namespace handgrad::cli {
namespace {

constexpr int kChain = 1000;
constexpr int kSamples = 21;
constexpr int kWarmUp = 5;

/// Median time of a call in nanoseconds.
template <class Work>
double median_ns(const Work& work) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < kWarmUp; ++i) work();
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    const auto start = Clock::now();
    work();
    samples.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  std::nth_element(samples.begin(), samples.begin() + kSamples / 2, samples.end());
  return samples[kSamples / 2];
}

/// `step` maps a tensor of the shape of `x` to another one of that shape.
template <class Step>
OpTime time_chain(const char* op, const Tensor& start, const Step& step) {
  pool_trim();  // blocks that follow each other in memory, as in a program that does only this
  Tensor x = start;
  x.requires_grad();
  const Array dy = Array::full(x.shape(), 1);
  const auto chain = [&] {
    Tensor y = x;
    for (int i = 0; i < kChain; ++i) y = step(y);
    return y;
  };
  OpTime time{op, x.shape().text()};
  time.no_graph_ns = median_ns([&] {
                       const NoGrad no_grad;
                       chain();
                     }) /
                     kChain;
  time.forward_ns = median_ns([&] { chain(); }) / kChain;
  time.both_ns = median_ns([&] {
                   x.zero_grad();
                   chain().backward(dy);
                 }) /
                 kChain;
  return time;
}

}  // namespace

std::vector<OpTime> bench_ops() {
  const Tensor four = Tensor::of({2, 2, 6, 6}), matrix = Tensor::of({{2, 2, 6, 6}});
  const Tensor small = Tensor::full({4}, 0.001);
  Tensor scale = Tensor::ones({4}), shift = Tensor::zeros({4}), weight = Tensor::full({4, 4}, 0.25);
  for (Tensor* parameter : {&scale, &shift, &weight}) parameter->requires_grad();
  return {
      time_chain("add", four, [&](const Tensor& x) { return x + small; }),
      time_chain("add a number", four, [](const Tensor& x) { return x + 0.001; }),
      time_chain("mul", four, [&](const Tensor& x) { return x * scale; }),
      time_chain("gelu", four, [](const Tensor& x) { return gelu(x); }),
      time_chain("softmax", four, [](const Tensor& x) { return softmax(x); }),
      time_chain("layer_norm", four, [&](const Tensor& x) { return layer_norm(x, scale, shift); }),
      time_chain("layer_norm_composed", four,
                 [&](const Tensor& x) { return layer_norm_composed(x, scale, shift); }),
      time_chain("linear", matrix, [&](const Tensor& x) { return linear(x, weight); }),
  };
}

std::string table(const std::vector<OpTime>& times) {
  view::Table rows({{"operation", view::Align::left, 20},
                    {"shape", view::Align::left, 7, 1},
                    {"no graph", view::Align::right, 9, 1},
                    {"forward", view::Align::right, 9, 1},
                    {"forward + backward", view::Align::right, 19, 1}});
  for (const OpTime& time : times)
    rows.add({time.op, time.shape, fmt::format("{:.1f}", time.no_graph_ns),
              fmt::format("{:.1f}", time.forward_ns), fmt::format("{:.1f}", time.both_ns)});
  return "nanoseconds for one operation, in a chain of 1000; the median of 21 chains\n\n" + rows.text();
}

nlohmann::ordered_json to_json(const std::vector<OpTime>& times) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const OpTime& time : times) {
    rows.push_back({{"op", time.op},
                    {"shape", time.shape},
                    {"no_graph_ns", time.no_graph_ns},
                    {"forward_ns", time.forward_ns},
                    {"both_ns", time.both_ns}});
  }
  return rows;
}

}  // namespace handgrad::cli
