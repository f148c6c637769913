// NameReport: how the arrays of a file differ from those that were expected, all of it at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "handgrad/core/error.h"
#include "handgrad/core/shape.h"

namespace handgrad::io {

/// Names or shapes that do not fit. The text reads
///
///     model.safetensors: 2 missing, 1 unexpected, 1 wrong shape
///       missing     trf_blocks.11.norm2.scale, trf_blocks.11.norm2.shift
///       unexpected  trf_blocks.11.ln_2.weight
///       wrong shape tok_emb.weight: file [50304, 768], model [50257, 768]
class NameMismatchError : public Error {
 public:
  /// `text` is what what() gives, all differences in it.
  NameMismatchError(std::string source, std::string summary, std::string text)
      : Error(std::move(source), std::move(summary)), text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }  ///< the whole text

 private:
  std::string text_;
};

/// Collects the differences.
class NameReport {
 public:
  /// `source`: the file that the arrays came from.
  explicit NameReport(std::string source) : source_(std::move(source)) {}

  void missing(std::string name) { missing_.push_back(std::move(name)); }  ///< expected, but absent
  void unexpected(std::string name) {
    unexpected_.push_back(std::move(name));
  }  ///< present, but not expected
  /// Notes a shape, or else a type, that differs from the model's. True when both are equal.
  bool expect(const std::string& name, const Shape& got, const Shape& wanted, std::string_view got_type,
              std::string_view wanted_type);
  /// NameMismatchError if anything was noted.
  void throw_if_any() const;

 private:
  std::string source_;
  std::vector<std::string> missing_, unexpected_, wrong_shape_, wrong_type_;
};

}  // namespace handgrad::io
