#include "handgrad/train/statistics.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/core/parallel.h"

namespace handgrad::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kMagic[] = {'h', 'g', 's', 't', 'a', 't', 'i', 's'};
constexpr int kVersion = 1;
constexpr std::int64_t kStepBytes = 16;       // step and learning rate
constexpr std::int64_t kParameterBytes = 64;  // eight numbers
constexpr std::size_t kBufferBytes = 1 << 18;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error("inspect", "'" + path.string() + "': " + what);
}

/// The one arithmetic for a recording that is read and for a parameter at work: the same bits. `beside` is called once for
/// each element: its sums cost less than another pass.
template <class Value, class Start, class Beside>
Statistics statistics_of(std::size_t n, const Value& value, const Start& start, const Beside& beside) {
  Statistics s;
  if (n == 0) return s;
  s.min = s.max = value(0);
  double largest = -1;
  for (std::size_t i = 0; i < n; ++i) {
    beside(i);
    const double v = value(i);
    s.mean += v;
    if (v < s.min) s.min = v;
    if (v > s.max) s.max = v;
    const double distance = std::abs(v - start(i));
    if (distance <= largest || std::isnan(largest)) continue;
    largest = distance;
    s.farthest = i;
  }
  s.mean /= static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i) s.std += (value(i) - s.mean) * (value(i) - s.mean);
  s.std = std::sqrt(s.std / static_cast<double>(n));
  s.farthest_value = value(s.farthest);
  return s;
}

/// Raw pointers: what a thread may see of a parameter. No gradient, or no value before: nullptr.
template <class T>
StepStatistics step_statistics(std::size_t n, const T* value, const T* start, const T* gradient,
                               const T* before) {
  const auto at = [](const T* numbers) { return [numbers](std::size_t i) -> double { return numbers[i]; }; };
  double gradient_squares = 0, update_squares = 0;
  StepStatistics s;
  s.value = statistics_of(n, at(value), at(start), [&](std::size_t i) {
    const double g = gradient == nullptr ? 0 : static_cast<double>(gradient[i]);
    const double u = before == nullptr ? 0 : static_cast<double>(value[i]) - static_cast<double>(before[i]);
    gradient_squares += g * g;
    update_squares += u * u;
  });
  s.gradient_norm = gradient == nullptr ? -1 : std::sqrt(gradient_squares);
  s.update_norm = before == nullptr ? -1 : std::sqrt(update_squares);
  return s;
}

template <class T>
void put(std::vector<char>& buffer, const T& value) {
  const char* bytes = reinterpret_cast<const char*>(&value);
  buffer.insert(buffer.end(), bytes, bytes + sizeof value);
}

}  // namespace

Statistics statistics(const std::vector<double>& value, const std::vector<double>& start) {
  return statistics_of(
      value.size(), [&](std::size_t i) { return value[i]; },
      [&](std::size_t i) { return start.empty() ? 0 : start[i]; }, [](std::size_t) {});
}

double norm_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number * number;
  return std::sqrt(sum);
}

// ---- StatisticsWriter

namespace {

/// Where the record of `step` ends in a file of these parameters. 0: there is none to continue, or it is damaged.
std::int64_t end_in_file(const std::filesystem::path& path, std::int64_t step, const Json& names) {
  if (!std::filesystem::exists(path)) return 0;
  try {
    const StatisticsFile file(path);
    return file.has_step(step) && Json(file.parameters()) == names ? file.end_of(step) : 0;
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace

StatisticsWriter::StatisticsWriter(std::filesystem::path path, optim::Parameters parameters,
                                   std::vector<Array> start, std::int64_t step)
    : path_(std::move(path)),
      parameters_(std::move(parameters)),
      start_(std::move(start)),
      record_(parameters_.size()) {
  Json names = Json::array();
  for (const nn::NamedParameter& named : parameters_) {
    names.push_back(named.name);
    numel_ += named.parameter->numel();
  }
  const auto record_bytes = static_cast<std::size_t>(kStepBytes) + parameters_.size() * kParameterBytes;
  buffer_.reserve(std::max(kBufferBytes, 4 * record_bytes));
  if (const std::int64_t end = step > 0 ? end_in_file(path_, step, names) : 0; end > 0) {
    std::filesystem::resize_file(path_, static_cast<std::uintmax_t>(end));
    open(std::ios::out | std::ios::in | std::ios::ate);
    return;
  }
  open(std::ios::out | std::ios::trunc);
  begin(Json{{"version", kVersion}, {"parameters", names}}.dump());
  if (step == 0) append(0, 0, {});
  flush();
}

void StatisticsWriter::begin(std::string header) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  buffer_.insert(buffer_.end(), kMagic, kMagic + sizeof kMagic);
  put(buffer_, static_cast<std::uint64_t>(header.size()));
  buffer_.insert(buffer_.end(), header.begin(), header.end());
}

void StatisticsWriter::open(std::ios::openmode mode) {
  file_.open(path_, mode | std::ios::binary);
  if (!file_) fail(path_, std::string("cannot be written: ") + std::strerror(errno));
}

void StatisticsWriter::append(std::int64_t step, double lr, const std::vector<Array>& before) {
  const auto take = [&](std::int64_t number) {
    const auto i = static_cast<std::size_t>(number);
    const Parameter& parameter = *parameters_[i].parameter;
    dispatch(parameter.dtype(), [&](auto zero) {
      using T = decltype(zero);
      record_[i] = step_statistics<T>(static_cast<std::size_t>(parameter.numel()),
                                      parameter.array().data<T>(), start_[i].data<T>(),
                                      step > 0 && parameter.has_grad() ? parameter.grad().data<T>() : nullptr,
                                      before.empty() ? nullptr : before[i].data<T>());
    });
  };
  constexpr std::int64_t kWorthForking = 1 << 15;
  const auto count = static_cast<std::int64_t>(parameters_.size());
  if (numel_ >= kWorthForking) {
    parallel_for(count, take);
  } else {
    for (std::int64_t i = 0; i < count; ++i) take(i);
  }
  put(buffer_, step);
  put(buffer_, lr);
  for (const StepStatistics& s : record_) {
    for (const double number : {s.value.mean, s.value.std, s.value.min, s.value.max}) put(buffer_, number);
    put(buffer_, static_cast<std::int64_t>(s.value.farthest));
    for (const double number : {s.value.farthest_value, s.gradient_norm, s.update_norm}) put(buffer_, number);
  }
  if (buffer_.size() * 2 > buffer_.capacity()) flush();
}

void StatisticsWriter::flush() {
  if (buffer_.empty()) return;
  file_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  file_.flush();
  buffer_.clear();
  if (!file_) fail(path_, std::string("cannot be written: ") + std::strerror(errno));
}

// ---- StatisticsFile

StatisticsFile::StatisticsFile(const std::filesystem::path& path) : path_(path) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  file_.open(path, std::ios::binary);
  if (error || !file_) fail(path, "cannot be read: " + (error ? error.message() : std::strerror(errno)));
  read_header();
  record_bytes_ = kStepBytes + static_cast<std::int64_t>(parameters_.size()) * kParameterBytes;
  const std::int64_t count = (size - first_record_) / record_bytes_;
  if (count <= 0) return;
  std::int64_t last = 0;
  read_at(first_step_, 0, &first_step_, sizeof first_step_);
  read_at(first_step_ + count - 1, 0, &last, sizeof last);
  last_step_ = first_step_ + count - 1;
  if (first_step_ < 0 || last != last_step_) fail(path_, "is damaged: its steps do not rise");
}

void StatisticsFile::read_header() {
  char magic[sizeof kMagic] = {};
  std::uint64_t length = 0;
  file_.read(magic, sizeof magic);
  file_.read(reinterpret_cast<char*>(&length), sizeof length);
  constexpr std::uint64_t kLongest = 1 << 26;
  if (!file_ || std::memcmp(magic, kMagic, sizeof magic) != 0 || length > kLongest)
    fail(path_, "does not hold the statistics of a training run");
  std::string text(length, '\0');
  file_.read(text.data(), static_cast<std::streamsize>(length));
  const Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    if (header.at("version").get<int>() != kVersion)
      fail(path_, "was written by another version of handgrad");
    parameters_ = header.at("parameters").get<std::vector<std::string>>();
  } catch (const Json::exception&) {
    fail(path_, "is damaged: its header is not complete");
  }
  first_record_ = static_cast<std::int64_t>(sizeof kMagic + 8 + length);
}

std::int64_t StatisticsFile::end_of(std::int64_t step) const {
  return first_record_ + (step - first_step_ + 1) * record_bytes_;
}

void StatisticsFile::read_at(std::int64_t step, std::int64_t offset, void* data, std::size_t bytes) const {
  file_.clear();
  file_.seekg(end_of(step) - record_bytes_ + offset);
  file_.read(static_cast<char*>(data), static_cast<std::streamsize>(bytes));
  if (!file_) fail(path_, "ends within a record");
}

double StatisticsFile::lr(std::int64_t step) const {
  double lr = 0;
  read_at(step, 8, &lr, sizeof lr);
  return lr;
}

StepStatistics StatisticsFile::read(std::size_t i, std::int64_t step) const {
  if (!has_step(step)) fail(path_, "step " + std::to_string(step) + " is not there");
  struct {
    double mean, std, min, max;
    std::int64_t farthest;
    double farthest_value, gradient_norm, update_norm;
  } on_disk{};
  static_assert(sizeof on_disk == kParameterBytes);
  read_at(step, kStepBytes + static_cast<std::int64_t>(i) * kParameterBytes, &on_disk, sizeof on_disk);
  return {{on_disk.mean, on_disk.std, on_disk.min, on_disk.max, static_cast<std::size_t>(on_disk.farthest),
           on_disk.farthest_value},
          on_disk.gradient_norm,
          on_disk.update_norm};
}

}  // namespace handgrad::train
