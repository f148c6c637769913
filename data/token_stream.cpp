#include "handgrad/data/token_stream.h"

#include <cmath>

#include <fmt/format.h>

#include "handgrad/core/error.h"

namespace handgrad::data {
namespace {

// n * fraction is exact to about 2^-52 of itself; without the allowance 10 tokens at 0.3 could hold back 4.
std::int64_t held_back(std::int64_t n, double fraction) {
  const double exact_enough = static_cast<double>(n) * fraction;
  return static_cast<std::int64_t>(std::ceil(exact_enough * (1 - 1e-12)));
}

}  // namespace

TokenStream::TokenStream(std::vector<std::int32_t> ids, std::string name)
    : storage_(std::make_shared<const std::vector<std::int32_t>>(std::move(ids))),
      ids_(*storage_),
      name_(std::move(name)) {}

TokenStream TokenStream::slice(std::int64_t begin, std::int64_t end, std::string name) const {
  TokenStream part = *this;
  part.ids_ = ids_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  part.name_ = std::move(name);
  return part;
}

Split split(const TokenStream& all, double val_fraction, std::int64_t context_length) {
  if (!(val_fraction >= 0 && val_fraction < 1))
    throw Error(all.name(), fmt::format("val_fraction must be at least 0 and below 1, got {}", val_fraction));
  if (val_fraction == 0) {
    if (context_length > 0) require_one_row(all, context_length);
    return {all, all.slice(all.size(), all.size(), all.name())};
  }
  const std::int64_t cut = all.size() - held_back(all.size(), val_fraction);
  const auto name = [&](const char* part) {
    return fmt::format("{}, {} part at val_fraction {} of {} tokens", all.name(), part, val_fraction,
                       all.size());
  };
  const Split parts = {all.slice(0, cut, name("training")), all.slice(cut, all.size(), name("validation"))};
  if (context_length == 0) return parts;
  require_one_row(parts.training, context_length);
  require_one_row(parts.validation, context_length);
  return parts;
}

void require_one_row(const TokenStream& stream, std::int64_t context_length) {
  if (stream.size() > context_length) return;
  throw Error(stream.name(),
              fmt::format("{} token{}, need at least {}", stream.size(), stream.size() == 1 ? "" : "s",
                          context_length + 1),
              {{"context_length", fmt::to_string(context_length) + ", and one more token, the last target"}},
              "a smaller context_length or a longer text");
}

}  // namespace handgrad::data
