#include "handgrad/data/token_stream.h"

#include <cmath>

#include <fmt/format.h>

#include "handgrad/data/error.h"

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
  require_one_row(all, context_length);
  const std::int64_t cut = all.size() - held_back(all.size(), val_fraction);
  const Split parts = {all.slice(0, cut, all.name()), all.slice(cut, all.size(), all.name())};
  const auto check = [&](const char* which, const TokenStream& part) {
    if (part.size() > context_length) return;
    throw Error(
        all.name(),
        fmt::format("the {} part has {} tokens, need at least {}", which, part.size(), context_length + 1),
        {{"tokens", fmt::to_string(all.size())},
         {"val_fraction", fmt::to_string(val_fraction)},
         {"context_length", fmt::to_string(context_length)}},
        "another val_fraction, a smaller context_length or a longer text");
  };
  check("training", parts.training);
  if (val_fraction > 0) check("validation", parts.validation);
  return parts;
}

void require_one_row(const TokenStream& stream, std::int64_t context_length) {
  if (stream.size() > context_length) return;
  throw Error(stream.name(), fmt::format("{} tokens, need at least {}", stream.size(), context_length + 1),
              {{"context_length", fmt::to_string(context_length) + ", and one more token, the last target"}},
              "a smaller context_length or a longer text");
}

}  // namespace handgrad::data
