#include "handgrad/io/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>

#include "handgrad/core/error.h"
#include "handgrad/io/files.h"
#include "handgrad/io/safetensors_header.h"

namespace handgrad::io {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kLargestHeader = 100'000'000;  // the format's own limit

float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// On the bits alone: arithmetic with subnormal numbers may be set to flush them.
float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  std::uint32_t exponent = (bits >> 10) & 0x1f;
  std::uint32_t fraction = static_cast<std::uint32_t>(bits & 0x3ff) << 13;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | fraction);
  if (exponent == 0) {
    if (fraction == 0) return std::bit_cast<float>(sign);
    const int shift = std::countl_zero(fraction) - 8;  // brings the highest bit to where a float hides it
    fraction = (fraction << shift) & 0x7fffff;
    exponent = 1 - static_cast<std::uint32_t>(shift);  // wraps; the bias below brings it back
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | fraction);
}

}  // namespace

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : path_(path) {
  file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) throw_file(path_, "cannot be opened", errno);
  try {
    read_header();
  } catch (...) {
    close(file_);
    throw;
  }
}

SafetensorsReader::~SafetensorsReader() { close(file_); }

void SafetensorsReader::read_header() {
  struct stat about {};
  if (fstat(file_, &about) != 0) throw_file(path_, "cannot be read", errno);
  if (!S_ISREG(about.st_mode)) throw Error(quoted(path_), "need a file of weights, got a folder or a device");
  const auto file_bytes = static_cast<std::uint64_t>(about.st_size);
  if (file_bytes < kLengthBytes) {
    throw Error(quoted(path_),
                fmt::format("a safetensors file has at least 8 bytes, this one {}", file_bytes));
  }
  std::uint64_t length = 0;
  read_bytes(0, &length, kLengthBytes);
  if (length > file_bytes - kLengthBytes) {
    throw Error(
        quoted(path_),
        fmt::format("the header should have {} bytes, the file has {}", length, file_bytes - kLengthBytes),
        {}, "fetch the file again: it seems to be cut off, or it is not a safetensors file");
  }
  if (length > kLargestHeader) {
    throw Error(quoted(path_),
                fmt::format("the header has {} bytes, at most {} are allowed", length, kLargestHeader));
  }
  std::string text(length, '\0');
  read_bytes(kLengthBytes, text.data(), length);
  data_begin_ = kLengthBytes + length;
  SafetensorsHeader header = parse_safetensors_header(text, file_bytes - data_begin_, quoted(path_));
  entries_ = std::move(header.entries);
  metadata_ = std::move(header.metadata);
}

void SafetensorsReader::read_bytes(std::uint64_t begin, void* data, std::uint64_t bytes) const {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    const std::uint64_t most = std::min(bytes, std::uint64_t{1} << 30);
    const ssize_t got = pread(file_, next, most, static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_file(path_, "cannot be read", errno);
    if (got == 0) throw Error(quoted(path_), "became shorter while it was read");
    next += got;
    begin += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::uint64_t>(got);
  }
}

const TensorEntry* SafetensorsReader::find(std::string_view name) const {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const TensorEntry& e) { return e.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

// The stored numbers block by block, each through `convert`; so nothing is held twice.
template <class From, class To, class Convert>
void SafetensorsReader::read_converted(const TensorEntry& entry, To* to, const Convert& convert) const {
  constexpr std::uint64_t kBlock = 8192;
  From block[kBlock];
  const auto count = static_cast<std::uint64_t>(entry.shape.numel());
  for (std::uint64_t begin = 0; begin < count; begin += kBlock) {
    const std::uint64_t n = std::min(kBlock, count - begin);
    read_bytes(data_begin_ + entry.begin + begin * sizeof(From), block, n * sizeof(From));
    for (std::uint64_t i = 0; i < n; ++i) to[begin + i] = convert(block[i]);
  }
}

Array SafetensorsReader::read(const TensorEntry& entry) const {
  const auto plain = [&](auto zero) {
    using T = decltype(zero);
    Array array(entry.shape, dtype_of<T>());
    if (array.numel() > 0) read_bytes(data_begin_ + entry.begin, array.mutable_data<T>(), array.bytes());
    return array;
  };
  if (entry.dtype == "F32") return plain(float{});
  if (entry.dtype == "F64") return plain(double{});
  if (entry.dtype == "I32") return plain(std::int32_t{});
  if (entry.dtype == "BF16" || entry.dtype == "F16") {
    Array array(entry.shape, DType::float32);
    read_converted<std::uint16_t>(entry, array.mutable_data<float>(),
                                  entry.dtype == "F16" ? from_f16 : from_bf16);
    return array;
  }
  if (entry.dtype == "I64") {
    Array array(entry.shape, DType::int32);
    read_converted<std::int64_t>(entry, array.mutable_data<std::int32_t>(), [&](std::int64_t number) {
      using Limits = std::numeric_limits<std::int32_t>;
      if (number >= Limits::min() && number <= Limits::max()) return static_cast<std::int32_t>(number);
      throw Error(quoted(path_), fmt::format("tensor {}: {} does not fit into 32 bits", entry.name, number));
    });
    return array;
  }
  throw Error(quoted(path_),
              fmt::format("tensor {}: numbers of type {} cannot be used", entry.name, entry.dtype),
              {{"types that can", "F32, F64, BF16, F16, I32, I64"}});
}

Array SafetensorsReader::read(std::string_view name) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr) throw Error(quoted(path_), fmt::format("there is no tensor {}", name));
  return read(*entry);
}

std::vector<NamedArray> SafetensorsReader::read_all() const {
  std::vector<NamedArray> arrays;
  arrays.reserve(entries_.size());
  for (const TensorEntry& entry : entries_) arrays.push_back({entry.name, read(entry)});
  return arrays;
}

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedArray>& arrays,
                       const Metadata& metadata) {
  const std::string header = safetensors_header_text(arrays, metadata, quoted(path));
  const std::uint64_t length = header.size();
  DurableFile file(path);
  file.write(&length, kLengthBytes);
  file.write(header);
  for (const NamedArray& named : arrays) {
    const Array& array = named.array;
    if (array.dtype() == DType::int32) {
      file.write(array.data<std::int32_t>(), array.bytes());
    } else {
      dispatch(array.dtype(), [&](auto zero) { file.write(array.data<decltype(zero)>(), array.bytes()); });
    }
  }
  file.finish();
}

}  // namespace handgrad::io
