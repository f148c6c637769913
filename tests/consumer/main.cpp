// LayerNorm of a row of four numbers, forward and backward, as you would write it by hand.
#include <handgrad/core/ops.h>

#include <cstdio>

using namespace handgrad;

void show(const char* name, const Array& numbers) {
  std::printf("%-12s", name);
  for (const double number : numbers.values()) std::printf("%7g", number);
  std::printf("\n");
}

int main() {
  Tensor x = Tensor::of({2, 2, 6, 6}).requires_grad();
  Tensor scale = Tensor::ones({4}).requires_grad();
  Tensor shift = Tensor::zeros({4}).requires_grad();

  Tensor centered = x - mean(x);
  Tensor variance = mean(square(centered));
  Tensor normalized = centered / sqrt(variance);
  Tensor output = scale * normalized + shift;

  show("mean", mean(x).array());
  show("centered", centered.array());
  show("variance", variance.array());
  show("normalized", normalized.array());

  output.backward(Tensor::of({1, 0, 0, 0}).array());  // the loss is output [0] itself
  show("d scale", scale.grad());
  show("d shift", shift.grad());
  show("d x", x.grad());
}
