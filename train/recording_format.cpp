#include "handgrad/train/recording_format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"

namespace handgrad::train {

std::uint64_t checksum_of(const char* bytes, std::size_t size) { return XXH3_64bits(bytes, size); }

void throw_recording(const std::filesystem::path& path, const std::string& what, const std::string& advice) {
  throw Error("inspect", "'" + path.string() + "': " + what, {}, advice);
}

std::size_t RecordingLayout::entry_place(std::size_t i) {
  return sizeof(RecordHead) + i * sizeof(RecordEntry);
}

std::uint64_t RecordingLayout::head_checksum(const char* head) const {
  constexpr std::size_t kBehind = sizeof(std::uint64_t);
  return checksum_of(head + kBehind, static_cast<std::size_t>(head_bytes()) - kBehind);
}

std::int64_t RecordingLayout::head_bytes() const {
  return static_cast<std::int64_t>(entry_place(parameters.size()));
}

/// Values and gradient; with gaps between the records the update too.
std::int64_t RecordingLayout::value_bytes(std::size_t i) const {
  return (every == 1 ? 2 : 3) * parameters[i].shape.numel() * static_cast<std::int64_t>(size_of(dtype));
}

std::int64_t RecordingLayout::all_value_bytes() const {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) bytes += value_bytes(i);
  return bytes;
}

std::string RecordingLayout::file_start() const {
  using Json = nlohmann::ordered_json;
  Json listed = Json::array();
  for (const auto& [name, shape] : parameters)
    listed.push_back({{"name", name}, {"shape", std::vector<std::int64_t>(shape.begin(), shape.end())}});
  std::string header = Json{
      {"version", kRecordingVersion},
      {"dtype", name_of(dtype)},
      {"every", every},
      {"parameters",
       listed}}.dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  return std::string(kRecordingMagic, sizeof kRecordingMagic) +
         std::string(reinterpret_cast<const char*>(&length), sizeof length) + header;
}

}  // namespace handgrad::train
