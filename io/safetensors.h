// The safetensors file format: eight bytes that give the length of a header, the header (JSON: name, type,
// shape and place of each tensor), then the numbers, little-endian, one tensor after another. Described at
// github.com/huggingface/safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "handgrad/io/safetensors_header.h"

namespace handgrad::io {

/// Reads a file strictly. The constructor checks all of the header against the size of the file before it
/// takes any memory for it: lengths and products that overflow, unknown types, tensors that overlap, gaps
/// between them, bytes after the last one, duplicate names. Error with the path and the reason.
class SafetensorsReader {
 public:
  /// Opens the file and checks its header.
  explicit SafetensorsReader(const std::filesystem::path& path);
  ~SafetensorsReader();
  SafetensorsReader(const SafetensorsReader&) = delete;
  SafetensorsReader& operator=(const SafetensorsReader&) = delete;

  const std::filesystem::path& path() const { return path_; }  ///< as it was given
  /// In the order of their places in the file.
  const std::vector<TensorEntry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }  ///< empty when the file has none
  /// nullptr when there is none of that name.
  const TensorEntry* find(std::string_view name) const;

  /// @{ The numbers of one tensor. F32 becomes float32, F64 float64, I32 int32; BF16 and F16 are widened to
  /// float32; I64 becomes int32 when every number fits, else Error. Error when there is none of that name,
  /// and naming the type when it is none of these.
  Array read(std::string_view name) const;
  Array read(const TensorEntry& entry) const;
  /// @}
  /// All tensors, in order.
  std::vector<NamedArray> read_all() const;

 private:
  void read_header();
  void read_bytes(std::uint64_t begin, void* data, std::uint64_t bytes) const;
  template <class From, class To, class Convert>
  void read_converted(const TensorEntry& entry, To* to, const Convert& convert) const;

  std::filesystem::path path_;
  std::vector<TensorEntry> entries_;
  Metadata metadata_;
  int file_ = -1;
  std::uint64_t data_begin_ = 0;  // place in the file
};

/// Writes `arrays` in the order given; the header is padded with spaces to a multiple of 8. The bytes depend
/// on the arguments only. Error with the path and the reason (a full disk, for instance): close and flush are
/// checked, and the numbers are on the disk when it returns. Error for a duplicate name.
void write_safetensors(const std::filesystem::path& path, const std::vector<NamedArray>& arrays,
                       const Metadata& metadata = {});

}  // namespace handgrad::io
