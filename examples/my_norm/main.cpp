// handgrad's program with one norm more.
#include <handgrad/train/cli/cli.h>

#include "my_norm.h"

int main(int argc, char** argv) {
  handgrad::nn::norms().add("my_norm", make_my_norm,
                            "each row divided by its mean absolute value, then gain");
  return handgrad::train::run_cli(argc, argv);
}
