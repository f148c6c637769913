// Any bytes as a safetensors file: every tensor is read, or the file is rejected.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "handgrad/core/error.h"
#include "handgrad/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace handgrad;
  static const int file = ::memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) return 0;
  try {
    const io::SafetensorsReader reader(path);
    for (const auto& entry : reader.entries()) {
      try {
        // What the header says never takes more memory than the file has; half types are widened to twice their size.
        if (reader.read(entry).numel() > static_cast<std::int64_t>(size)) __builtin_trap();
      } catch (const Error&) {  // a type that handgrad has not, an int64 that does not fit
      }
    }
  } catch (const Error& error) {
    if (std::string(error.what()).empty()) __builtin_trap();
  }
  return 0;
}
