#include "handgrad/train/recording.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace handgrad::train {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
T get(const std::vector<char>& bytes, std::size_t place) {
  T value;
  std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

std::vector<double> difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = a[i] - b[i];
  return result;
}

}  // namespace

Recording::Recording(const std::filesystem::path& path) : path_(path) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  file_.open(path, std::ios::binary);
  if (error || !file_)
    throw_recording(path, "cannot be read: " + (error ? error.message() : std::strerror(errno)));
  read_start();
  head_bytes_ = layout_.head_bytes();
  for (std::size_t i = 0; i < layout_.parameters.size(); ++i) {
    offsets_.push_back(value_bytes_);
    value_bytes_ += layout_.value_bytes(i);
  }
  find_last(size);
}

void Recording::read_start() {
  char magic[sizeof kRecordingMagic] = {};
  std::uint64_t length = 0;
  file_.read(magic, sizeof magic);
  file_.read(reinterpret_cast<char*>(&length), sizeof length);
  constexpr std::uint64_t kLongest = 1 << 26;
  if (!file_ || std::memcmp(magic, kRecordingMagic, sizeof magic) != 0 || length > kLongest)
    throw_recording(path_, "is not a recording of a training run");
  std::string text(length, '\0');
  file_.read(text.data(), static_cast<std::streamsize>(length));
  const Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    if (header.at("version").get<int>() != kRecordingVersion)
      throw_recording(path_, "was written by another version of handgrad");
    layout_.dtype = header.at("dtype").get<std::string>() == "float64" ? DType::float64 : DType::float32;
    layout_.every = header.at("every").get<std::int64_t>();
    if (layout_.every < 1) throw_recording(path_, "is damaged: its steps do not rise");
    for (const Json& parameter : header.at("parameters"))
      layout_.parameters.push_back({parameter.at("name").get<std::string>(),
                                    Shape(parameter.at("shape").get<std::vector<std::int64_t>>())});
  } catch (const Json::exception&) {
    throw_recording(path_, "is damaged: its header is not complete");
  }
  first_record_ = static_cast<std::int64_t>(sizeof kRecordingMagic + 8 + length);
}

/// From the last record that is surely there on: only the last one of all has values between two multiples of `every`.
void Recording::find_last(std::int64_t size) {
  const std::int64_t group = layout_.every * head_bytes_ + value_bytes_;
  const std::int64_t groups = std::max<std::int64_t>((size - first_record_) / group - 1, 0);
  for (std::int64_t step = groups * layout_.every; place_of(step) + head_bytes_ <= size; ++step) {
    RecordHead head;
    read_bytes(place_of(step), &head, sizeof head);
    if (head.step != step) throw_damaged(step);
    const bool due = step % layout_.every == 0;
    const bool values = head.has_values != 0 && place_of(step) + head_bytes_ + value_bytes_ <= size;
    if (due && !values) return;
    last_step_ = step;
    last_has_values_ = values;
    if (head.has_values != 0 && !due) return;
  }
}

std::int64_t Recording::place_of(std::int64_t step) const {
  return first_record_ + step * head_bytes_ + (step + layout_.every - 1) / layout_.every * value_bytes_;
}

std::vector<std::int64_t> Recording::steps(std::int64_t first, std::int64_t last) const {
  std::vector<std::int64_t> all;
  const std::int64_t every = layout_.every;
  last = std::min(last, last_step_);
  for (std::int64_t step = (first + every - 1) / every * every; step <= last; step += every)
    all.push_back(step);
  if (last == last_step_ && last >= first && last % every != 0 && last_has_values_) all.push_back(last);
  return all;
}

void Recording::throw_damaged(std::int64_t step) const {
  throw_recording(
      path_, "the record of step " + std::to_string(step) + " is damaged: it is not what the run wrote there",
      "a copy of the file, or train again; other steps can be read");
}

void Recording::read_bytes(std::int64_t place, void* to, std::int64_t bytes) const {
  if (file_.tellg() != place)
    file_.seekg(place);  // a seek empties the stream's buffer, also one to where it is
  file_.read(static_cast<char*>(to), bytes);
  if (!file_) {
    file_.clear();
    throw_recording(path_, "ends within a record");
  }
}

const std::vector<char>& Recording::head_of(std::int64_t step) const {
  if (step == head_step_) return head_;
  if (step < 0 || step > last_step_)
    throw_recording(path_, "step " + std::to_string(step) + " is not recorded");
  head_step_ = -1;
  head_.resize(static_cast<std::size_t>(head_bytes_));
  read_bytes(place_of(step), head_.data(), head_bytes_);
  const RecordHead head = get<RecordHead>(head_, 0);
  if (head.step != step || head.checksum != layout_.head_checksum(head_.data())) throw_damaged(step);
  head_step_ = step;
  return head_;
}

double Recording::lr(std::int64_t step) const { return get<RecordHead>(head_of(step), 0).lr; }

RecordEntry Recording::entry_of(std::size_t i, std::int64_t step) const {
  return get<RecordEntry>(head_of(step), RecordingLayout::entry_place(i));
}

/// Those of step.step; the update only where it is recorded.
void Recording::read_values(std::size_t i, RecordedStep& step) const {
  const RecordEntry entry = entry_of(i, step.step);
  std::vector<char> bytes(static_cast<std::size_t>(layout_.value_bytes(i)));
  read_bytes(place_of(step.step) + head_bytes_ + offsets_[i], bytes.data(), layout_.value_bytes(i));
  if (checksum_of(bytes.data(), bytes.size()) != entry.checksum) throw_damaged(step.step);
  const auto count = static_cast<std::size_t>(layout_.parameters[i].shape.numel());
  const char* from = bytes.data();
  const auto take = [&](std::vector<double>& numbers, bool is_there) {
    numbers.resize(is_there ? count : 0);
    dispatch(layout_.dtype, [&](auto number) {
      for (std::size_t k = 0; k < numbers.size(); ++k) {
        std::memcpy(&number, from + k * sizeof number, sizeof number);
        numbers[k] = static_cast<double>(number);
      }
      from += count * sizeof number;
    });
  };
  take(step.value, true);
  take(step.gradient, entry.statistics.gradient_norm != -1);
  if (layout_.every != 1) take(step.update, step.step > 0);
}

RecordedStep Recording::read(std::size_t i, std::int64_t step) const {
  if (!has_values(step)) throw_recording(path_, "step " + std::to_string(step) + " is not recorded");
  RecordedStep result, before;
  if (layout_.every == 1 && step > 0) {
    before.step = step - 1;
    read_values(i, before);
  }
  result.step = step;
  result.lr = lr(step);
  read_values(i, result);
  if (!before.value.empty()) result.update = difference(result.value, before.value);
  return result;
}

void Recording::for_each_step(const std::vector<std::size_t>& parameters,
                              const std::function<void(const std::vector<RecordedStep>&)>& visit) const {
  std::vector<RecordedStep> records(parameters.size());
  std::vector<double> before;
  for (const std::int64_t step : steps()) {
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      RecordedStep& record = records[k];
      record.step = step;
      record.lr = lr(step);
      before.swap(record.value);
      read_values(parameters[k], record);
      if (layout_.every == 1 && step > 0) record.update = difference(record.value, before);
    }
    visit(records);
  }
}

}  // namespace handgrad::train
