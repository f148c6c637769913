// The program: `handgrad VERB ...`. A program with custom layers registers them and calls the same function.
#pragma once

namespace handgrad::cli {

/// Runs a command line and returns its exit status: 0 done; 1 it failed while running; 2 wrong usage or config; 130 and
/// 143 after Ctrl-C and SIGTERM. Results go to stdout, logs, progress and errors to stderr. It throws nothing.
int run_cli(int argc, char** argv);

}  // namespace handgrad::cli
