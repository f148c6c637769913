// Gradients against finite differences, in double precision: checks that a backward function matches its forward.
//
//     const GradCheckReport report = check_gradients(
//         [](const std::vector<Tensor>& in) { return layer_norm(in[0], in[1], in[2]); }, {x, scale, shift});
//     if (!report.ok) std::cerr << report;
//
// The result's gradient comes from upstream numbers that are random and different for each element: equal ones would
// hide mistakes, since the outputs of a LayerNorm or a softmax always sum to the same number.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "handgrad/core/parameter.h"
#include "handgrad/core/tensor.h"

namespace handgrad {

/// How closely gradients are compared, and where.
struct GradCheckOptions {
  /// error <= tolerance * max(largest gradient of that tensor, 1e-3 * largest gradient of all tensors): some gradients
  /// are exactly 0, and a ratio to rounding errors means nothing.
  double tolerance = 1e-6;
  /// The step, times max(1, |x|). The difference has four points, (8 (f(x+h) - f(x-h)) - (f(x+2h) - f(x-2h))) / 12h,
  /// which errs by h^4 f''''' / 30; a power of two, so that x + h is exact more often.
  double step = 0x1p-12;
  /// Elements checked of each tensor, spread evenly; 0 for all of them.
  std::int64_t elements = 0;
  /// Seeds the upstream numbers, uniform in [0.5, 1.5] with random signs.
  std::uint64_t seed = 2266;
};

/// One tensor's result. The error is that of the rule above before it is compared with the tolerance.
struct GradCheckEntry {
  std::string name;           ///< "input 0", or the parameter's full name
  Shape shape;                ///< of the tensor
  std::int64_t checked = 0;   ///< elements
  bool has_gradient = false;  ///< false: backward gave none; right if the differences are 0
  double largest = 0;         ///< gradient, by size
  std::int64_t worst = 0;     ///< flat position of the element with the largest error
  double gradient = 0;        ///< there, by backward
  double difference = 0;      ///< there, by finite differences
  double error = 0;           ///< there; see GradCheckOptions::tolerance
  bool ok = true;             ///< whether the error is at most the tolerance
};

/// The result of a check, tensor by tensor.
struct GradCheckReport {
  bool ok = true;                       ///< whether every tensor is
  double error = 0;                     ///< the largest of all
  std::vector<GradCheckEntry> tensors;  ///< in the order given

  /// A table: one line for each tensor, with its worst element.
  std::string text() const;
};
/// Prints text().
std::ostream& operator<<(std::ostream& out, const GradCheckReport& report);

/// Checks the gradients of `f` with respect to copies of `inputs`, named "input 0", "input 1", ... `f` may return any
/// shape; it must be smooth within two steps of the inputs, and give the same result each time: random operations draw
/// the same numbers in each evaluation. DTypeError unless everything is float64, ValueError when two evaluations
/// differ, GraphError when the result does not depend on the inputs.
GradCheckReport check_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                                const std::vector<Tensor>& inputs, const GradCheckOptions& options = {});

/// A parameter and what the report calls it.
struct CheckedParameter {
  std::string name;      ///< its full name
  Parameter* parameter;  ///< must be float64
};

/// The same for parameters that `f` reads in place: their numbers are changed and restored, their gradients cleared.
/// Frozen ones are left out.
GradCheckReport check_parameters(const std::function<Tensor()>& f,
                                 const std::vector<CheckedParameter>& parameters,
                                 const GradCheckOptions& options = {});

/// For a module's named_parameters(), or any list of things with a `name` and a `parameter`.
template <class Named>
GradCheckReport check_parameters(const std::function<Tensor()>& f, const std::vector<Named>& parameters,
                                 const GradCheckOptions& options = {}) {
  std::vector<CheckedParameter> checked;
  for (const Named& each : parameters) checked.push_back({each.name, each.parameter});
  return check_parameters(f, checked, options);
}

}  // namespace handgrad
