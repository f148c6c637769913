#include "handgrad/models/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "handgrad/core/error.h"
#include "handgrad/io/files.h"
#include "handgrad/io/name_report.h"

namespace handgrad::models {
namespace {

bool is_float(const std::string& dtype) {
  return dtype == "F32" || dtype == "F64" || dtype == "BF16" || dtype == "F16";
}

bool same_bits(const Array& a, const Array& b) {
  return dispatch(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return a.bytes() == 0 || std::memcmp(a.data<T>(), b.data<T>(), a.bytes()) == 0;
  });
}

}  // namespace

std::vector<io::NamedArray> weights_of(const std::vector<nn::NamedParameter>& parameters) {
  std::vector<io::NamedArray> weights;
  for (const nn::NamedParameter& named : parameters)
    weights.push_back({named.name, named.parameter->array()});
  return weights;
}

WeightsFile::WeightsFile(const std::filesystem::path& path, const nn::Module& model, AcceptTypes types)
    : reader_(path) {
  find_entries(model);
  check(types);
}

void WeightsFile::find_entries(const nn::Module& model) {
  std::unordered_map<const Parameter*, std::size_t> places;
  for (const nn::NamedParameter& named : model.named_parameters(nn::TiedNames::all)) {
    const auto [place, added] = places.emplace(named.parameter, matches_.size());
    if (added) matches_.push_back({named.parameter, named.name});
    if (const auto* entry = reader_.find(named.name)) matches_[place->second].entries.push_back(entry);
  }
}

void WeightsFile::check(AcceptTypes types) const {
  io::NameReport report(reader_.path().string());
  std::unordered_set<const io::TensorEntry*> used;
  for (const Match& match : matches_) {
    if (match.entries.empty()) report.missing(match.name);
    const std::string wanted = match.parameter->dtype() == DType::float64 ? "F64" : "F32";
    for (const auto* entry : match.entries) {
      used.insert(entry);
      const bool convertible = types == AcceptTypes::any_float && is_float(entry->dtype);
      report.expect(entry->name, entry->shape, match.parameter->shape(), convertible ? wanted : entry->dtype,
                    wanted);
    }
  }
  for (const auto& entry : reader_.entries()) {
    if (!used.contains(&entry)) report.unexpected(entry.name);
  }
  report.throw_if_any();
}

std::vector<Array> WeightsFile::read() const {
  std::vector<Array> numbers;
  for (const Match& match : matches_) {
    numbers.push_back(reader_.read(*match.entries.front()));
    for (std::size_t i = 1; i < match.entries.size(); ++i) {
      if (same_bits(numbers.back(), reader_.read(*match.entries[i]))) continue;
      io::throw_file(reader_.path(),
                     fmt::format("{} and {} are one tensor in the model, but differ in the file",
                                 match.entries.front()->name, match.entries[i]->name));
    }
    if (numbers.back().dtype() != match.parameter->dtype()) {
      numbers.back() = numbers.back().to(match.parameter->dtype());
    }
  }
  return numbers;
}

void WeightsFile::assign(const std::vector<Array>& numbers) const {
  for (std::size_t i = 0; i < matches_.size(); ++i) matches_[i].parameter->mutable_array().assign(numbers[i]);
}

}  // namespace handgrad::models
