#include "handgrad/io/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "handgrad/core/error.h"
#include "handgrad/io/json_text.h"

namespace handgrad::io {
namespace {

constexpr const char* kMetadata = "__metadata__";

// A state machine over the parser's events: it stores only the entries and rejects anything else where it occurs,
// duplicate names included (a parsed object would have dropped them silently).
class HeaderEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderEvents(SafetensorsHeader& header, const std::string& source) : header_(header), source_(source) {}

  bool start_object(std::size_t) override {
    if (place_ == Place::start) return go(Place::top);
    if (place_ == Place::name) return go(name_ == kMetadata ? Place::metadata : Place::tensor);
    throw_error("unexpected object");
  }
  bool end_object() override {
    if (place_ == Place::tensor) finish_tensor();
    return go(place_ == Place::top ? Place::end : Place::top);
  }
  bool key(std::string& key) override {
    if (place_ == Place::top) {
      if (!names_.insert(key).second) throw_tensor(key, "occurs twice");
      start_tensor(key);
      return go(Place::name);
    }
    if (place_ == Place::metadata && header_.metadata.contains(key))
      throw_error("metadata " + key + " occurs twice");
    if (place_ == Place::tensor && key != "dtype" && key != "shape" && key != "data_offsets") {
      throw_tensor(name_, "unknown key \"" + key + "\"");
    }
    if (place_ == Place::tensor && !keys_.insert(key).second) throw_tensor(name_, key + " occurs twice");
    key_ = key;
    return true;
  }
  bool string(std::string& text) override {
    if (place_ == Place::metadata) {
      header_.metadata.emplace(key_, text);
    } else if (place_ == Place::tensor && key_ == "dtype") {
      dtype_ = text;
    } else {
      throw_value();
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || key_ == "dtype") throw_value();
    return go(Place::list);
  }
  bool end_array() override { return go(Place::tensor); }
  bool number_unsigned(std::uint64_t number) override {
    if (place_ != Place::list) throw_value();
    std::vector<std::uint64_t>& list = key_ == "shape" ? shape_ : offsets_;
    if (list.size() == (key_ == "shape" ? std::size_t{Shape::kMaxRank} : 2)) {
      throw_tensor(name_, fmt::format("{} has more than {} numbers", key_, list.size()));
    }
    list.push_back(number);
    return true;
  }
  bool null() override { throw_value(); }
  bool boolean(bool) override { throw_value(); }
  bool number_integer(std::int64_t) override { throw_value(); }
  bool number_float(double, const std::string&) override { throw_value(); }
  bool binary(binary_t&) override { throw_value(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    throw_error(fmt::format("the header is not JSON, at byte {}: {}", position, without_id(error.what())));
  }

 private:
  enum class Place { start, top, name, metadata, tensor, list, end };

  bool go(Place place) {
    place_ = place;
    return true;
  }
  [[noreturn]] void throw_error(const std::string& message) const { throw Error(source_, message); }
  [[noreturn]] void throw_tensor(const std::string& name, const std::string& message) const {
    throw_error("tensor " + name + ": " + message);
  }
  [[noreturn]] void throw_value() const {
    if (place_ == Place::metadata) throw_error("metadata " + key_ + " must be text");
    if (place_ == Place::start) throw_error("the header must be a JSON object");
    if (place_ == Place::name) throw_tensor(name_, "must be an object");
    throw_tensor(name_,
                 key_ == "dtype" ? "dtype must be text" : key_ + " must be a list of whole numbers from 0");
  }

  void start_tensor(const std::string& name) {
    name_ = name;
    dtype_.clear();
    shape_.clear();
    offsets_.clear();
    keys_.clear();
  }
  void finish_tensor() {
    for (const char* key : {"dtype", "shape", "data_offsets"}) {
      if (!keys_.contains(key)) throw_tensor(name_, std::string(key) + " is missing");
    }
    const std::uint64_t type_bytes = safetensors_type_bytes(dtype_);
    if (type_bytes == 0) throw_tensor(name_, "unknown dtype \"" + dtype_ + "\"");
    if (offsets_.size() != 2)
      throw_tensor(name_, fmt::format("data_offsets needs 2 numbers, got {}", offsets_.size()));
    if (offsets_[1] < offsets_[0]) {
      throw_tensor(name_,
                   fmt::format("data_offsets end before they begin: [{}, {}]", offsets_[0], offsets_[1]));
    }
    TensorEntry entry{name_, dtype_, Shape{}, offsets_[0], offsets_[1]};
    std::uint64_t bytes = type_bytes;
    bool overflow = false;
    for (const std::uint64_t size : shape_) {
      overflow = overflow || size > std::numeric_limits<std::int64_t>::max();
      overflow = __builtin_mul_overflow(bytes, size, &bytes) || overflow;
      entry.shape.push_back(static_cast<std::int64_t>(size));
    }
    if (overflow) throw_tensor(name_, fmt::format("shape [{}] is too large", fmt::join(shape_, ", ")));
    if (bytes != entry.end - entry.begin) {
      throw_tensor(name_, fmt::format("shape {} of {} needs {} bytes, data_offsets span {}",
                                      entry.shape.text(), dtype_, bytes, entry.end - entry.begin));
    }
    header_.entries.push_back(std::move(entry));
  }

  SafetensorsHeader& header_;
  const std::string& source_;
  Place place_ = Place::start;
  std::string name_, key_, dtype_;
  std::vector<std::uint64_t> shape_, offsets_;
  std::unordered_set<std::string> names_, keys_;
};

// Tensors must be contiguous and fill the data.
void check_places(const SafetensorsHeader& header, std::uint64_t data_bytes, const std::string& source) {
  const TensorEntry* before = nullptr;
  std::uint64_t end = 0;
  for (const TensorEntry& entry : header.entries) {
    if (entry.begin < end) {
      throw Error(source, fmt::format("tensors {} and {} overlap", before->name, entry.name));
    }
    if (entry.begin > end) {
      throw Error(source, fmt::format("bytes {} to {} of the data belong to no tensor", end, entry.begin));
    }
    end = entry.end;
    before = &entry;
  }
  if (end > data_bytes) {
    throw Error(source, fmt::format("the tensors need {} bytes of data, the file has {}", end, data_bytes),
                {}, "fetch the file again: it seems to be cut off");
  }
  if (end < data_bytes) throw Error(source, fmt::format("{} bytes follow the last tensor", data_bytes - end));
}

const char* type_name(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "F32";
    case DType::float64:
      return "F64";
    case DType::int32:
      return "I32";
  }
  return "";
}

}  // namespace

std::uint64_t safetensors_type_bytes(std::string_view dtype) {
  constexpr std::pair<std::string_view, std::uint64_t> kTypes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
      {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"I64", 8},     {"U64", 8}, {"F64", 8}};
  for (const auto& [name, bytes] : kTypes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::string& source) {
  if (text.empty() || text.front() != '{') throw Error(source, "the header must begin with {");
  // The parser would take a NUL byte for the end of the text.
  if (text.find('\0') != std::string_view::npos) throw Error(source, "the header has a NUL byte");
  SafetensorsHeader header;
  HeaderEvents events(header, source);
  nlohmann::json::sax_parse(text.begin(), text.end(), &events);
  std::sort(header.entries.begin(), header.entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_places(header, data_bytes, source);
  return header;
}

std::string safetensors_header_text(const std::vector<NamedArray>& arrays, const Metadata& metadata,
                                    const std::string& source) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::unordered_set<std::string_view> names = {kMetadata};
  std::uint64_t begin = 0;
  for (const NamedArray& named : arrays) {
    if (!names.insert(named.name).second) throw Error(source, "tensor " + named.name + " occurs twice");
    const std::uint64_t end = begin + named.array.bytes();
    const Shape& shape = named.array.shape();
    header[named.name] = {{"dtype", type_name(named.array.dtype())},
                          {"shape", std::vector<std::int64_t>(shape.begin(), shape.end())},
                          {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace handgrad::io
