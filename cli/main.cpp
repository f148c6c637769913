#include "handgrad/cli/cli.h"

int main(int argc, char** argv) { return handgrad::cli::run_cli(argc, argv); }
