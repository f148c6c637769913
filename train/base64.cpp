#include "handgrad/train/base64.h"

#include <cstdint>

namespace handgrad::train {

std::string base64(const void* data, std::size_t bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* byte = static_cast<const std::uint8_t*>(data);
  std::string text;
  text.reserve((bytes + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes; i += 3) {
    const std::size_t have = bytes - i < 3 ? bytes - i : 3;
    std::uint32_t bits = std::uint32_t{byte[i]} << 16;
    if (have > 1) bits |= std::uint32_t{byte[i + 1]} << 8;
    if (have > 2) bits |= byte[i + 2];
    for (std::size_t digit = 0; digit < 4; ++digit)
      text += digit <= have ? kDigits[bits >> (18 - 6 * digit) & 63] : '=';
  }
  return text;
}

std::string base64(const std::vector<double>& numbers, DType dtype) {
  if (dtype == DType::float64) return base64(numbers.data(), numbers.size() * sizeof(double));
  const std::vector<float> narrow(numbers.begin(), numbers.end());
  return base64(narrow.data(), narrow.size() * sizeof(float));
}

}  // namespace handgrad::train
