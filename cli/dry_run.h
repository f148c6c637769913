// train --dry-run: what a run would be, need and take, without a file written.
#pragma once

#include <string>

#include "handgrad/train/run.h"

namespace handgrad::cli {

/// Prints the run's description, the table of its parameters, the memory it needs and the time that a few real steps
/// take. The steps are left out when the memory of this machine is too small for them. `title`: the run's name.
void dry_run(const train::Run& run, const std::string& title);

}  // namespace handgrad::cli
