// The program as data.
#pragma once

#include "handgrad/cli/verb.h"

namespace handgrad::cli {

/// The whole program with all of its verbs. What their options wrote into is shared by all that this call returned.
Verb program();

}  // namespace handgrad::cli
