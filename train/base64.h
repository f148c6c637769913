// Numbers as text that a page can carry.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "handgrad/core/dtype.h"

namespace handgrad::train {

/// `bytes` bytes in base64, padded.
std::string base64(const void* data, std::size_t bytes);

/// `numbers` as little-endian elements of `dtype`, in base64.
std::string base64(const std::vector<double>& numbers, DType dtype);

}  // namespace handgrad::train
