// Initialization: the first numbers of a model's parameters.
#pragma once

#include <cstdint>

#include "handgrad/nn/module.h"

namespace handgrad::nn {

/// Where a GPT's first weights come from.
enum class Init {
  /// PyTorch's defaults, which the book uses: Linear weight and bias uniform in +-1 / sqrt(in), Embedding
  /// normal with deviation 1.
  book,
  /// GPT-2's: weights normal with deviation 0.02, biases 0; a Linear that ends a residual branch gets 0.02 /
  /// sqrt(number of branches), so that the sum of all branches stays as large as one (Radford et al., 2019; a
  /// GPT has 2 n_layers branches).
  gpt2
};

/// Gives every Linear and Embedding below `root` its first numbers. Each parameter's numbers are keyed by
/// `seed` and its own name, so they do not depend on what else the model has. A tied parameter is initialized
/// once, by the module that declared it first. All other parameters keep what they were declared with, norms
/// their ones and zeros.
void initialize(Module& root, Init scheme, std::uint64_t seed);

/// Whether `initialize` draws a parameter anew: those of a Linear or an Embedding.
enum class Redrawn { no, yes };
/// @{ What a layer made by hand starts with: numbers from a sequence of the calling thread, other ones each time.
Tensor uniform_start(const Shape& shape, double low, double high, Redrawn redrawn = Redrawn::no);
Tensor normal_start(const Shape& shape, double mean, double deviation, Redrawn redrawn = Redrawn::no);
/// @}

/// Leaves out random numbers that are replaced at once: to draw those of GPT-2 takes seconds.
enum class Draw {
  everything,          ///< the usual
  only_by_initialize,  ///< not what is Redrawn: a model is made that calls `initialize` on all of it
  nothing              ///< `initialize` leaves zeros: all weights come from a file
};

/// What is drawn by this thread while it lives; of two the stricter one holds.
class DrawGuard {
 public:
  explicit DrawGuard(Draw draw);  ///< for this thread, until the guard goes
  ~DrawGuard();
  DrawGuard(const DrawGuard&) = delete;
  DrawGuard& operator=(const DrawGuard&) = delete;

 private:
  Draw before_;
};

}  // namespace handgrad::nn
