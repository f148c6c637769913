// The header of a safetensors file: reading it strictly, and writing it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/core/array.h"

namespace handgrad::io {

/// Numbers under a name.
struct NamedArray {
  std::string name;  ///< unique in a file
  Array array;       ///< of any type that a file can hold
};

/// Free text beside the tensors ("__metadata__" in the file).
using Metadata = std::map<std::string, std::string>;

/// What the header says of a tensor.
struct TensorEntry {
  std::string name;   ///< unique in a file
  std::string dtype;  ///< as in the file: "F32", "F64", "I32", "I64", "BF16", "F16", ...
  Shape shape;        ///< [] for a scalar
  /// @{ Where its numbers begin and end, in bytes after the header.
  std::uint64_t begin, end;
  /// @}
};

/// Bytes of one number of the type `dtype` ("F32"); 0 for a type that the format does not know.
std::uint64_t safetensors_type_bytes(std::string_view dtype);

/// What a header says.
struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  ///< in the order of their places
  Metadata metadata;                 ///< empty when there is none
};

/// From the header's text and the size of the data behind it. Error, its subject `source`, for everything
/// that is not exactly right.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::string& source);

/// The text for `arrays` one after another, padded with spaces to a multiple of 8.
std::string safetensors_header_text(const std::vector<NamedArray>& arrays, const Metadata& metadata,
                                    const std::string& source);

}  // namespace handgrad::io
