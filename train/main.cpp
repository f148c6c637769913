#include "handgrad/train/cli/cli.h"

int main(int argc, char** argv) { return handgrad::train::run_cli(argc, argv); }
