#include "handgrad/train/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "handgrad/optim/registry.h"
#include "handgrad/train/checkpoint.h"

namespace handgrad::train {
namespace {

namespace fs = std::filesystem;

/// An update may be the difference of two float32 numbers, which needs more digits.
DType dtype_for(Quantity of, DType recorded) { return of == Quantity::update ? DType::float64 : recorded; }

}  // namespace

const std::vector<std::string>& quantity_names() {
  static const std::vector<std::string> names = {"value", "gradient", "update", "first_moment",
                                                 "second_moment"};
  return names;
}

std::vector<std::string> state_names(Quantity of) {
  return optim::states_of(of == Quantity::first_moment ? optim::Moment::first : optim::Moment::second);
}

const std::string& name_of(Quantity quantity) { return quantity_names()[static_cast<std::size_t>(quantity)]; }

History::History(const fs::path& run, Quantity of, bool unrecorded) : run_(run), of_(of) {
  if (fs::exists(run / kRecordingFile)) recording_ = std::make_unique<Recording>(run / kRecordingFile);
  const bool moments = of >= Quantity::first_moment;
  if (moments || unrecorded || !recording_) checkpoint_steps_ = steps_of_checkpoints(run);
  add_recorded();
  if (checkpoint_steps_.empty()) return;
  if (moments || unrecorded || !recording_) add_unrecorded();
  if (moments) add_moments();
}

void History::add_recorded() {
  if (!recording_) return;
  // Before training there are values only.
  const std::int64_t first = of_ == Quantity::value ? 0 : 1;
  for (std::int64_t step = first; step <= recording_->last_step(); ++step) recorded_steps_.push_back(step);
  for (std::size_t i = 0; i < recording_->parameters().size(); ++i)
    entries_.push_back({recording_->parameters()[i].name, recording_->parameters()[i].shape, i, {}});
}

void History::add_unrecorded() {
  std::set<std::string> known;
  for (const Item& entry : entries_) known.insert(entry.name);
  for (const auto& tensor : reader(checkpoint_steps_.back(), kModelFile).entries()) {
    if (known.contains(tensor.name)) continue;
    entries_.push_back({tensor.name, tensor.shape, std::nullopt,
                        of_ == Quantity::value ? checkpoint_steps_ : std::vector<std::int64_t>{}});
  }
}

void History::add_moments() {
  for (const std::int64_t step : checkpoint_steps_) {
    const io::SafetensorsReader& file = reader(step, kOptimizerFile);
    for (Item& entry : entries_)
      if (!moment_of(file, entry.name).empty()) entry.saved.push_back(step);
  }
}

std::int64_t History::last_step() const {
  std::int64_t last = -1;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (!steps(i).empty()) last = std::max(last, steps(i).back());
  return last;
}

std::string History::optimizer_type() const {
  return read_checkpoint_state(run_ / "checkpoints" / checkpoint_name(checkpoint_steps_.back())).optimizer;
}

std::vector<std::string> History::moments() const {
  std::set<std::string> names;
  for (const auto& tensor : reader(checkpoint_steps_.back(), kOptimizerFile).entries())
    names.insert(tensor.name.substr(tensor.name.rfind('.') + 1));
  names.erase("step");
  return {names.begin(), names.end()};
}

const io::SafetensorsReader& History::reader(std::int64_t step, const char* file) const {
  const fs::path path = run_ / "checkpoints" / checkpoint_name(step) / file;
  if (!reader_ || reader_->path() != path) reader_ = std::make_unique<io::SafetensorsReader>(path);
  return *reader_;
}

/// The name of the moment in the file; empty when it has none: the parameter was never updated.
std::string History::moment_of(const io::SafetensorsReader& file, const std::string& parameter) const {
  for (const std::string& state : state_names(of_))
    if (file.find(parameter + "." + state) != nullptr) return parameter + "." + state;
  return "";
}

bool History::has_numbers(std::size_t i, std::int64_t step) const {
  return from_checkpoints(i) || recording_->has_values(step);
}

HistoryStep History::read(std::size_t i, std::int64_t step) const {
  const Item& entry = entries_[i];
  if (from_checkpoints(i)) {
    const bool moment = of_ >= Quantity::first_moment;
    const io::SafetensorsReader& file = reader(step, moment ? kOptimizerFile : kModelFile);
    const Array array = file.read(moment ? moment_of(file, entry.name) : entry.name);
    return {array.dtype(), array.values(), {}, {}};
  }
  RecordedStep recorded = recording_->read(*entry.recorded, step);
  const DType dtype = dtype_for(of_, recording_->dtype());
  if (of_ == Quantity::gradient) return {dtype, std::move(recorded.gradient), {}, {}};
  if (of_ == Quantity::update) return {dtype, std::move(recorded.update), {}, {}};
  return {dtype, std::move(recorded.value), std::move(recorded.gradient), std::move(recorded.update)};
}

const std::vector<double>& History::start_of(std::size_t i) const {
  std::vector<double>& start = starts_[i];
  if (start.empty() && of_ == Quantity::value && entries_[i].recorded)
    start = recording_->read(*entries_[i].recorded, 0).value;
  return start;
}

HistorySummary History::summary(std::size_t i, std::int64_t step) const {
  HistorySummary s;
  if (from_checkpoints(i)) {
    const HistoryStep numbers = read(i, step);
    s.statistics = statistics(numbers.numbers, {});
    s.distance = std::abs(s.statistics->farthest_value);
    s.dtype = numbers.dtype;
    return s;
  }
  const std::size_t recorded = *entries_[i].recorded;
  const auto known = [](double norm) { return norm == -1 ? std::nullopt : std::optional<double>(norm); };
  const StepStatistics kept = recording_->statistics(recorded, step);
  s.dtype = dtype_for(of_, recording_->dtype());
  s.lr = recording_->lr(step);
  s.gradient_norm = known(kept.gradient_norm);
  s.update_norm = known(kept.update_norm);
  if (of_ == Quantity::value) {
    s.statistics = kept.value;
  } else if (recording_->has_values(step)) {
    s.statistics = statistics(read(i, step).numbers, {});
  }
  if (s.statistics)
    s.distance = std::abs(s.statistics->farthest_value -
                          (start_of(i).empty() ? 0 : start_of(i).at(s.statistics->farthest)));
  return s;
}

}  // namespace handgrad::train
