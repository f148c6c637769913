// handgrad's program with one more norm.
#include <handgrad/cli/cli.h>

#include "my_norm.h"

int main(int argc, char** argv) {
  handgrad::nn::norms().add("my_norm", make_my_norm,
                            "each row divided by its mean absolute value, then gain");
  return handgrad::cli::run_cli(argc, argv);
}
