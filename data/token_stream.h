// A text as token ids, and its parts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace handgrad::data {

/// A stretch of token ids and what messages call it. Copies and slices share the ids.
class TokenStream {
 public:
  TokenStream() = default;
  /// `name`: what messages call it, usually the file.
  TokenStream(std::vector<std::int32_t> ids, std::string name);

  std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }  ///< number of tokens
  /// @{ The ids; good as long as any copy or slice lives.
  const std::int32_t* data() const { return ids_.data(); }
  std::span<const std::int32_t> ids() const { return ids_; }
  /// @}
  const std::string& name() const { return name_; }  ///< what messages call it

  /// ids begin .. end - 1; 0 <= begin <= end <= size().
  TokenStream slice(std::int64_t begin, std::int64_t end, std::string name) const;

 private:
  std::shared_ptr<const std::vector<std::int32_t>> storage_;
  std::span<const std::int32_t> ids_;
  std::string name_;
};

/// The two parts of a text: what is learned from, and the end of it, which is held back.
struct Split {
  TokenStream training;    ///< the beginning
  TokenStream validation;  ///< empty when val_fraction is 0
};

/// Cuts a text as nanoGPT does: training gets floor(n * (1 - val_fraction)) tokens, so 6,033 at 0.1 give 5,429 and
/// 604. The parts have names that tell how they were cut. Error unless 0 <= val_fraction < 1, and when a part (but not
/// the empty validation part of val_fraction 0) is shorter than a row of `context_length` tokens and the target after
/// it; with `context_length` 0 that is left to require_one_row.
Split split(const TokenStream& all, double val_fraction, std::int64_t context_length);

/// Error when `stream` is shorter than a row of `context_length` tokens and the target after it.
void require_one_row(const TokenStream& stream, std::int64_t context_length);

}  // namespace handgrad::data
