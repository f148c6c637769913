// The table of operations: each one declared in core/ops.h, with inputs to check its gradients at. tests/test_ops.cpp
// says what is checked, and fails when an operation has no row.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "handgrad/core/ops.h"
#include "handgrad/core/random.h"

namespace op_table {

using handgrad::Dims;
using handgrad::DType;
using handgrad::Ids;
using handgrad::KeepDim;
using handgrad::Shape;
using handgrad::Tensor;

/// Where random inputs lie: away from the points where an operation has no derivative.
enum class Range {
  any,       ///< -2 to 2
  positive,  ///< 0.5 to 2
  off_zero,  ///< 0.2 to 2, either sign
  distinct,  ///< a shuffled 0, 0.1, 0.2, ...: no ties, and none within a step of another
};

struct Input {
  Shape shape;
  Range range = Range::any;
};

using Inputs = const std::vector<Tensor>&;
using Function = std::function<Tensor(Inputs)>;

struct Row {
  std::string operation;  ///< as ops.h declares it, types only: "add(Tensor, double)"
  std::string form;       ///< "[2, 3] [3]", with what else distinguishes it
  std::vector<Input> inputs;
  Function f;
  double tolerance = 1e-6;
};

/// The numbers of a row's inputs, in float64, each of them a float32 number as well.
inline std::vector<Tensor> numbers_for(const Row& row) {
  handgrad::Random random(2266);
  std::vector<Tensor> all;
  for (const Input& input : row.inputs) {
    const std::int64_t n = input.shape.numel();
    std::vector<double> values;
    for (std::int64_t i = 0; i < n; ++i) {
      const double sign = random.below(2) == 0 ? -1 : 1;
      if (input.range == Range::any) values.push_back(random.uniform(-2, 2));
      if (input.range == Range::positive) values.push_back(random.uniform(0.5, 2));
      if (input.range == Range::off_zero) values.push_back(sign * random.uniform(0.2, 2));
      if (input.range == Range::distinct) values.push_back(0.1 * static_cast<double>(i));
    }
    if (input.range == Range::distinct)
      for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
    for (double& v : values) v = static_cast<float>(v);
    all.push_back(Tensor::of(values, input.shape, DType::float64));
  }
  return all;
}

inline std::string form_of(const std::vector<Input>& inputs, const std::string& extra = {}) {
  std::string form;
  for (const Input& input : inputs) form += (form.empty() ? "" : " ") + input.shape.text();
  return extra.empty() ? form : form + " " + extra;
}

class Table {
 public:
  std::vector<Row> rows;

  void add(const std::string& operation, std::vector<Input> inputs, Function f, const std::string& extra = {},
           double tolerance = 1e-6) {
    rows.push_back({operation, form_of(inputs, extra), std::move(inputs), std::move(f), tolerance});
  }

  /// A function of each element: scalars, size-1 dimensions, rows shorter and longer than a vector register.
  template <class F>
  void each(const std::string& operation, Range range, const F& f, const std::string& extra = {}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{4}, Shape{2, 1, 3}, Shape{3, 37}})
      add(
          operation, {{shape, range}}, [f](Inputs in) { return f(in[0]); }, extra);
  }

  /// A function of two operands under broadcasting.
  template <class F>
  void pair(const std::string& operation, Range a_range, Range b_range, const F& f) {
    const std::pair<Shape, Shape> forms[] = {
        {{4}, {4}},       {{2, 3}, {3}},       {{3}, {2, 3}},
        {{2, 1}, {1, 3}}, {{1}, {2, 2}},       {{}, {2, 3}},
        {{2, 3}, {}},     {{3, 1}, {2, 3, 4}}, {{2, 3, 17}, {2, 3, 17}},
        {{5, 33}, {33}},  {{5, 33}, {5, 1}},   {{2, 1, 4, 1}, {3, 1, 5}},
        {{}, {}},
    };
    for (const auto& [a, b] : forms)
      add(operation, {{a, a_range}, {b, b_range}}, [f](Inputs in) { return f(in[0], in[1]); });
  }

  /// A reduction over dimensions, kept and not.
  template <class F>
  void reduction(const std::string& operation, Range range, const F& f, const std::string& extra = {}) {
    const std::pair<Shape, Dims> forms[] = {
        {{4}, {0}},
        {{4}, -1},
        {{2, 5}, -1},
        {{2, 5}, {0}},
        {{2, 5}, {0, 1}},
        {{2, 3, 4}, {1}},
        {{2, 3, 4}, {0, 2}},
        {{2, 3, 4}, {0, 1}},
        {{2, 3, 4}, {-1, -2}},
        {{2, 1, 3}, {1}},
        {{2, 1, 3, 2}, {3, 1}},
        {{2, 2, 2, 3}, {0, 2}},
        {{2, 2, 2, 3}, {1, 3}},
        {{3, 37}, -1},
        {{19, 3}, {0}},
    };
    for (const auto& [shape, dims] : forms)
      for (const KeepDim keep : {KeepDim::no, KeepDim::yes})
        add(
            operation, {{shape, range}}, [f, over = dims, keep](Inputs in) { return f(in[0], over, keep); },
            "over " + dims.text() + (keep == KeepDim::yes ? " kept" : "") + extra);
  }
};

Table table();

}  // namespace op_table
