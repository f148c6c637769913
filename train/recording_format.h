// How a recording is laid out, for its reader and its writer.
//
// The file: 8 bytes "hgrecord", the length of a JSON header (uint64), the header ({"version", "dtype", "every",
// "parameters": [{"name", "shape"}]}), then a record of every step from 0, the state before training. All numbers are
// little-endian and have 8 bytes, except those of parameters, which have the run's element type.
//
//     of the record       checksum of all that follows up to the values, step, learning rate, whether values follow
//     of each parameter   mean, std, min, max, farthest, its value, |gradient|, |update|, checksum of its values
//     then, after every `every` steps and after the last one, of each parameter
//                         values, gradient (zeros without one), and, when `every` is not 1, the update
//
// Checksums are XXH3 with 64 bits. With every step recorded the update is the difference of two records.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "handgrad/core/dtype.h"
#include "handgrad/core/shape.h"
#include "handgrad/train/statistics.h"

namespace handgrad::train {

inline constexpr char kRecordingMagic[8] = {'h', 'g', 'r', 'e', 'c', 'o', 'r', 'd'};  ///< the first 8 bytes
inline constexpr int kRecordingVersion = 2;                                           ///< in the header

/// How a record begins.
struct RecordHead {
  std::uint64_t checksum = 0;   ///< see RecordingLayout::head_checksum
  std::int64_t step = 0;        ///< 0: before training
  double lr = 0;                ///< of this step's update
  std::int64_t has_values = 0;  ///< 1: they follow
};
static_assert(sizeof(RecordHead) == 32);

/// Then of each parameter.
struct RecordEntry {
  StepStatistics statistics;   ///< of every step
  std::uint64_t checksum = 0;  ///< of its values, gradient and update; 0 without them
};
static_assert(sizeof(RecordEntry) == 72);

/// A parameter as the recording knows it.
struct RecordedParameter {
  std::string name;  ///< "trf_blocks.0.norm1.scale"
  Shape shape;       ///< of its values, gradients and updates

  bool operator==(const RecordedParameter&) const = default;  ///< compares both
};

/// What every record of a file has in common: its header, and the sizes that follow from it.
struct RecordingLayout {
  DType dtype = DType::float32;               ///< of values, gradients and updates
  std::int64_t every = 1;                     ///< steps from one record with values to the next
  std::vector<RecordedParameter> parameters;  ///< in the order of the file

  /// @{ Bytes of a record: its numbers, the values of parameter `i` with gradient and update, those of all of them.
  std::int64_t head_bytes() const;
  std::int64_t value_bytes(std::size_t i) const;
  std::int64_t all_value_bytes() const;
  /// @}
  std::string file_start() const;  ///< the file up to its first record
  /// The checksum of a record up to its values, without the checksum itself.
  std::uint64_t head_checksum(const char* head) const;
  /// Where entry `i` begins within a record.
  static std::size_t entry_place(std::size_t i);
  bool operator==(const RecordingLayout&) const = default;  ///< compares the header
};

/// XXH3 of these bytes.
std::uint64_t checksum_of(const char* bytes, std::size_t size);

/// Error of this file.
[[noreturn]] void throw_recording(const std::filesystem::path& path, const std::string& what,
                                  const std::string& advice = {});

}  // namespace handgrad::train
