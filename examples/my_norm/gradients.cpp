// Checks gradients against finite differences, in double precision.
#include <handgrad/core/gradcheck.h>

#include <iostream>

#include "absolute.h"
#include "my_norm.h"

using namespace handgrad;

int main() {
  const Tensor x = Tensor::of({{1, -2, 3, 0.5}, {-4, 0.25, 1, 2}}, DType::float64);
  MyNorm norm(4, 1e-5);
  norm.to(DType::float64);
  norm.gain.mutable_array().assign(
      Array::of({0.5, -1, 2, 1.5}, {4}, DType::float64));  // uneven: ones hide mistakes

  const GradCheckReport reports[] = {
      check_gradients([&](const std::vector<Tensor>& in) { return norm(in[0]); }, {x}),
      check_parameters([&] { return norm(x); }, norm.named_parameters()),
      check_gradients([](const std::vector<Tensor>& in) { return absolute(in[0]); }, {x})};
  bool ok = true;
  for (const GradCheckReport& report : reports) {
    std::cout << report;
    ok = ok && report.ok;
  }
  return ok ? 0 : 1;
}
