// Adding one array to another in place.
#pragma once

#include "handgrad/core/array.h"

namespace handgrad {

/// destination += source, of equal shape and type.
void accumulate(Array& destination, const Array& source);

}  // namespace handgrad
