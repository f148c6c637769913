#include "handgrad/train/recording.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"

namespace handgrad::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kMagic[] = {'h', 'g', 'r', 'e', 'c', 'o', 'r', 'd'};
constexpr int kVersion = 1;
constexpr std::int64_t kLearningRateAt = 8, kHead = 16;  // a record begins with its step, and this
constexpr auto kFlushInterval = std::chrono::milliseconds(100);

/// Values and gradient; with gaps between the records the update too.
int parts_of(std::int64_t every) { return every == 1 ? 2 : 3; }

std::int64_t parameter_bytes(const Shape& shape, DType dtype, std::int64_t every) {
  return 8 + parts_of(every) * shape.numel() * static_cast<std::int64_t>(size_of(dtype));
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error("inspect", "'" + path.string() + "': " + what);
}

template <class T>
void put(std::vector<char>& buffer, const T& value) {
  const char* bytes = reinterpret_cast<const char*>(&value);
  buffer.insert(buffer.end(), bytes, bytes + sizeof value);
}

void put_numbers(std::vector<char>& buffer, const Array& numbers) {
  dispatch(numbers.dtype(), [&](auto zero) {
    const char* bytes = reinterpret_cast<const char*>(numbers.data<decltype(zero)>());
    buffer.insert(buffer.end(), bytes, bytes + numbers.bytes());
  });
}

std::vector<double> difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = a[i] - b[i];
  return result;
}

void put_zeros(std::vector<char>& buffer, std::size_t bytes) { buffer.resize(buffer.size() + bytes); }

void put_update(std::vector<char>& buffer, const Array& before, const Array& after) {
  dispatch(after.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < after.numel(); ++i) put(buffer, T(after.data<T>()[i] - before.data<T>()[i]));
  });
}

}  // namespace

// ---- Recorder

Recorder::Recorder(std::filesystem::path path, const Trainer& trainer, const std::vector<std::string>& names,
                   std::int64_t every, std::int64_t last)
    : path_(std::move(path)), every_(every), last_(last), flushed_(std::chrono::steady_clock::now()) {
  auto record = static_cast<std::size_t>(kHead);
  Json listed = Json::array();
  for (const nn::NamedParameter& parameter : trainer.parameters()) {
    if (std::find(names.begin(), names.end(), parameter.name) == names.end()) continue;
    const Shape& shape = parameter.parameter->shape();
    parameters_.push_back(parameter);
    dtype_ = parameter.parameter->dtype();
    record += static_cast<std::size_t>(parameter_bytes(shape, dtype_, every));
    listed.push_back(
        {{"name", parameter.name}, {"shape", std::vector<std::int64_t>(shape.begin(), shape.end())}});
    if (every != 1) before_.push_back(parameter.parameter->array().copy());
  }
  header_ = Json{{"version", kVersion}, {"dtype", name_of(dtype_)}, {"every", every}, {"parameters", listed}}
                .dump();
  header_.resize((header_.size() + 7) / 8 * 8, ' ');
  buffer_.reserve(std::max<std::size_t>(std::size_t{1} << 20, 4 * record));
  if (trainer.step_count() == 0) {
    create();
  } else {
    continue_at(trainer.step_count());
  }
  if (every != 1) open_statistics(trainer.step_count());
}

Recorder::~Recorder() {
  try {
    flush();
  } catch (const std::exception&) {  // flush() reports errors, a destructor cannot
  }
}

void Recorder::create() {
  file_.open(path_, std::ios::out | std::ios::binary | std::ios::trunc);
  if (!file_) fail(path_, std::string("cannot be written: ") + std::strerror(errno));
  buffer_.insert(buffer_.end(), kMagic, kMagic + sizeof kMagic);
  put(buffer_, static_cast<std::uint64_t>(header_.size()));
  buffer_.insert(buffer_.end(), header_.begin(), header_.end());
  append(0, 0);
  flush();
}

void Recorder::continue_at(std::int64_t step) {
  std::int64_t record_bytes = kHead;
  for (const nn::NamedParameter& p : parameters_)
    record_bytes += parameter_bytes(p.parameter->shape(), dtype_, every_);
  const std::int64_t start = static_cast<std::int64_t>(sizeof kMagic + 8 + header_.size());
  std::int64_t have = 0;
  {
    const Recording recording(path_);
    have = recording.step_count();
    bool same = recording.every() == every_ && recording.dtype() == dtype_ &&
                recording.parameters().size() == parameters_.size();
    for (std::size_t i = 0; same && i < parameters_.size(); ++i)
      same = recording.parameters()[i].name == parameters_[i].name;
    if (!same)
      fail(path_, "holds other parameters, or steps, than this run records; write to another folder");
  }
  const std::int64_t keep = std::min(have, step / every_ + 1);  // without the last step's, if it is between
  std::filesystem::resize_file(path_, static_cast<std::uintmax_t>(start + keep * record_bytes));
  file_.open(path_, std::ios::out | std::ios::in | std::ios::binary | std::ios::ate);
  if (!file_) fail(path_, std::string("cannot be written: ") + std::strerror(errno));
}

/// The state before training is the first record of the values.
void Recorder::open_statistics(std::int64_t step) {
  std::vector<Array> start;
  const Recording recording(path_);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    start.push_back(Array::of(recording.read(i, 0).value, parameters_[i].parameter->shape(), dtype_));
  statistics_.emplace(path_.parent_path() / kStatisticsFile, parameters_, std::move(start), step);
}

void Recorder::before_update(const Trainer& /*trainer*/, const StepReport& /*report*/) {
  if (every_ == 1) return;
  for (std::size_t i = 0; i < parameters_.size(); ++i) before_[i].assign(parameters_[i].parameter->array());
}

void Recorder::after_update(const Trainer& /*trainer*/, const StepReport& report) {
  if (statistics_) statistics_->append(report.step, report.lr, before_);
  if (due(report.step)) append(report.step, report.lr);
  const auto now = std::chrono::steady_clock::now();
  if (now - flushed_ >= kFlushInterval || buffer_.size() * 2 > buffer_.capacity()) {
    flush();
    flushed_ = now;
  }
}

void Recorder::append(std::int64_t step, double lr) {
  put(buffer_, step);
  put(buffer_, lr);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = *parameters_[i].parameter;
    const bool has_gradient = step > 0 && parameter.has_grad();
    put(buffer_, std::int64_t{has_gradient});
    put_numbers(buffer_, parameter.array());
    if (has_gradient) {
      put_numbers(buffer_, parameter.grad());
    } else {
      put_zeros(buffer_, parameter.array().bytes());
    }
    if (every_ != 1) put_update(buffer_, before_[i], parameter.array());
  }
}

void Recorder::flush() {
  if (statistics_) statistics_->flush();
  if (buffer_.empty()) return;
  file_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  file_.flush();
  buffer_.clear();
  if (!file_) fail(path_, std::string("cannot be written: ") + std::strerror(errno));
}

// ---- Recording

Recording::Recording(const std::filesystem::path& path) : path_(path) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  file_.open(path, std::ios::binary);
  if (error || !file_) fail(path, "cannot be read: " + (error ? error.message() : std::strerror(errno)));
  read_header();
  record_bytes_ = kHead;
  for (const RecordedParameter& parameter : parameters_) {
    offsets_.push_back(record_bytes_);
    record_bytes_ += parameter_bytes(parameter.shape, dtype_, every_);
  }
  record_count_ = (size - first_record_) / record_bytes_;
  if (record_count_ == 0) return;
  file_.seekg(first_record_ + (record_count_ - 1) * record_bytes_);
  file_.read(reinterpret_cast<char*>(&last_step_), sizeof last_step_);
  if (last_step_ <= (record_count_ - 2) * every_ || last_step_ > (record_count_ - 1) * every_)
    fail(path_, "is damaged: its steps do not rise");
}

std::vector<std::int64_t> Recording::steps(std::int64_t first, std::int64_t last) const {
  std::vector<std::int64_t> all;
  last = std::min(last, last_step_);
  for (std::int64_t step = (first + every_ - 1) / every_ * every_; step <= last; step += every_)
    all.push_back(step);
  if (last == last_step_ && last_step_ >= first && last_step_ % every_ != 0) all.push_back(last_step_);
  return all;
}

void Recording::read_header() {
  char magic[sizeof kMagic] = {};
  std::uint64_t length = 0;
  file_.read(magic, sizeof magic);
  file_.read(reinterpret_cast<char*>(&length), sizeof length);
  constexpr std::uint64_t kLongest = 1 << 26;
  if (!file_ || std::memcmp(magic, kMagic, sizeof magic) != 0 || length > kLongest)
    fail(path_, "is not a recording of a training run");
  std::string text(length, '\0');
  file_.read(text.data(), static_cast<std::streamsize>(length));
  const Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    if (header.at("version").get<int>() != kVersion)
      fail(path_, "was written by another version of handgrad");
    dtype_ = header.at("dtype").get<std::string>() == "float64" ? DType::float64 : DType::float32;
    every_ = header.at("every").get<std::int64_t>();
    if (every_ < 1) fail(path_, "is damaged: its steps do not rise");
    for (const Json& parameter : header.at("parameters"))
      parameters_.push_back({parameter.at("name").get<std::string>(),
                             Shape(parameter.at("shape").get<std::vector<std::int64_t>>())});
  } catch (const Json::exception&) {
    fail(path_, "is damaged: its header is not complete");
  }
  first_record_ = static_cast<std::int64_t>(sizeof kMagic + 8 + length);
}

Recording::Range Recording::range_of(std::size_t i) const {
  return {offsets_[i], offsets_[i] + parameter_bytes(parameters_[i].shape, dtype_, every_)};
}

void Recording::read_bytes(std::int64_t record, Range range, char* to) const {
  const std::int64_t place = first_record_ + record * record_bytes_ + range.begin;
  if (file_.tellg() != place)
    file_.seekg(place);  // a seek empties the stream's buffer, also one to where it is
  file_.read(to, static_cast<std::streamsize>(range.end - range.begin));
  if (!file_) {
    file_.clear();
    fail(path_, "ends within a record");
  }
}

/// The update only where it is recorded.
void Recording::decode(const char* bytes, std::size_t i, RecordedStep& step) const {
  std::int64_t has_gradient = 0;
  std::memcpy(&has_gradient, bytes, sizeof has_gradient);
  bytes += sizeof has_gradient;
  const auto count = static_cast<std::size_t>(parameters_[i].shape.numel());
  const auto take = [&](std::vector<double>& numbers, bool is_there) {
    numbers.resize(is_there ? count : 0);
    dispatch(dtype_, [&](auto number) {
      for (std::size_t k = 0; k < numbers.size(); ++k) {
        std::memcpy(&number, bytes + k * sizeof number, sizeof number);
        numbers[k] = static_cast<double>(number);
      }
      bytes += count * sizeof number;
    });
  };
  take(step.value, true);
  take(step.gradient, has_gradient != 0);
  if (every_ != 1) take(step.update, step.step > 0);
}

RecordedStep Recording::read(std::size_t i, std::int64_t step) const {
  if (!has_step(step)) fail(path_, "step " + std::to_string(step) + " is not recorded");
  const std::int64_t record = (step + every_ - 1) / every_;
  const Range range = range_of(i);
  std::vector<char> bytes(static_cast<std::size_t>(range.end - range.begin));
  RecordedStep result, before;
  result.step = step;
  read_bytes(record, {kLearningRateAt, kHead}, reinterpret_cast<char*>(&result.lr));
  read_bytes(record, range, bytes.data());
  decode(bytes.data(), i, result);
  if (every_ != 1 || step == 0) return result;
  read_bytes(record - 1, range, bytes.data());
  decode(bytes.data(), i, before);
  result.update = difference(result.value, before.value);
  return result;
}

void Recording::for_each_step(const std::vector<std::size_t>& parameters,
                              const std::function<void(const std::vector<RecordedStep>&)>& visit) const {
  std::vector<Range> ranges{{0, kHead}};  // what lies side by side is read in one piece
  for (const std::size_t i : parameters) {
    const Range range = range_of(i);
    if (range.begin == ranges.back().end) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  }
  std::vector<char> bytes(static_cast<std::size_t>(record_bytes_));
  std::vector<RecordedStep> steps(parameters.size());
  std::vector<double> before;
  for (std::int64_t record = 0; record < record_count_; ++record) {
    for (const Range& range : ranges) read_bytes(record, range, bytes.data() + range.begin);
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const std::size_t i = parameters[k];
      before.swap(steps[k].value);
      steps[k].step = std::min(record * every_, last_step_);
      std::memcpy(&steps[k].lr, bytes.data() + kLearningRateAt, sizeof steps[k].lr);
      decode(bytes.data() + range_of(i).begin, i, steps[k]);
      if (every_ == 1 && record > 0) steps[k].update = difference(steps[k].value, before);
    }
    visit(steps);
  }
}

}  // namespace handgrad::train
