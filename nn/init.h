// Initialization: how the first numbers of parameters are drawn.
#pragma once

#include <cstdint>

#include "handgrad/core/scope.h"

namespace handgrad::nn {

class Module;

/// Where a GPT's first weights come from.
enum class Init {
  /// PyTorch's defaults, which the book uses: Linear weight and bias uniform in +-1 / sqrt(in), Embedding
  /// normal with deviation 1. handgrad's layers declare them.
  book,
  /// GPT-2's: matrices normal with deviation 0.02, vectors 0; a Linear that ends a residual branch gets 0.02 /
  /// sqrt(number of branches), so that the sum of all branches stays as large as one (Radford et al., 2019; a
  /// GPT has 2 n_layers branches).
  gpt2
};

/// Chooses the distributions that the layers below `root` declared as default. What a layer chose stays.
void set_init(Module& root, Init init);

/// Draws each parameter below `root` that was declared with a distribution. Its numbers depend on `seed` and
/// its full name, not on what else the model has. A tied parameter is drawn once, under its first name.
/// Without effect while a DrawLater lives.
void draw(Module& root, std::uint64_t seed);

/// While it lives, parameters that the calling thread declares hold zeros, not random numbers:
/// `draw` follows, or weights from a file. It saves the seconds that GPT-2's numbers take. Without it a layer
/// has random numbers at once, from a sequence of the thread.
class DrawLater : ScopedValue<bool> {
 public:
  DrawLater();
};

}  // namespace handgrad::nn
