#include "handgrad/train/recording_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "handgrad/core/parallel.h"
#include "handgrad/train/recording.h"

namespace handgrad::train {
namespace {

constexpr auto kFlushInterval = std::chrono::milliseconds(100);

template <class T>
void set(std::vector<char>& bytes, std::size_t place, const T& value) {
  std::memcpy(bytes.data() + place, &value, sizeof value);
}

void put_bytes(std::vector<char>& buffer, const void* bytes, std::size_t size) {
  const char* from = static_cast<const char*>(bytes);
  buffer.insert(buffer.end(), from, from + size);
}

}  // namespace

RecordingWriter::RecordingWriter(std::filesystem::path path, const Trainer& trainer,
                                 const std::vector<std::string>& names, std::int64_t every, std::int64_t last)
    : path_(std::move(path)), last_(last), flushed_(std::chrono::steady_clock::now()) {
  layout_.every = every;
  for (const nn::NamedParameter& named : trainer.parameters()) {
    if (std::find(names.begin(), names.end(), named.name) == names.end()) continue;
    const Parameter& parameter = *named.parameter;
    parameters_.push_back(named);
    layout_.dtype = parameter.dtype();
    layout_.parameters.push_back({named.name, parameter.shape()});
    before_.push_back(parameter.array().copy());
    numel_ += parameter.numel();
  }
  statistics_.resize(parameters_.size());
  const auto record = static_cast<std::size_t>(layout_.head_bytes() + layout_.all_value_bytes());
  buffer_.reserve(std::max<std::size_t>(std::size_t{1} << 20, 4 * record));
  if (trainer.step_count() == 0) {
    create();
  } else {
    continue_after(trainer.step_count());
  }
}

RecordingWriter::~RecordingWriter() {
  try {
    flush();
  } catch (const std::exception&) {  // flush() reports errors, a destructor cannot
  }
}

void RecordingWriter::open(std::ios::openmode mode) {
  file_.open(path_, std::ios::out | std::ios::binary | mode);
  if (!file_) throw_recording(path_, std::string("cannot be written: ") + std::strerror(errno));
}

void RecordingWriter::create() {
  open(std::ios::trunc);
  for (const Array& array : before_) start_.push_back(array.copy());
  const std::string start = layout_.file_start();
  put_bytes(buffer_, start.data(), start.size());
  append(0, 0);
  flush();
}

/// Keeps the record of `step`, its values only where they are due: it is not the last one any more.
void RecordingWriter::continue_after(std::int64_t step) {
  const Recording recording(path_);
  if (recording.layout() != layout_)
    throw_recording(path_,
                    "holds other parameters, or steps, than this run records; write to another folder");
  if (recording.last_step() < step)
    throw_recording(path_,
                    "ends at step " + std::to_string(recording.last_step()) + ", before step " +
                        std::to_string(step) + ", where the run continues",
                    "remove the checkpoints of later steps, or train again");
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    start_.push_back(Array::of(recording.read(i, 0).value, layout_.parameters[i].shape, layout_.dtype));
  std::vector<char> head = recording.head_of(step);
  const bool values = step % layout_.every == 0;
  if (!values) {
    set(head, offsetof(RecordHead, has_values), std::int64_t{0});
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      set(head, layout_.entry_place(i) + offsetof(RecordEntry, checksum), std::uint64_t{0});
    set(head, 0, layout_.head_checksum(head.data()));
  }
  const std::int64_t place = recording.place_of(step);
  const std::int64_t end = place + layout_.head_bytes() + (values ? layout_.all_value_bytes() : 0);
  std::filesystem::resize_file(path_, static_cast<std::uintmax_t>(end));
  open(std::ios::in);
  file_.seekp(place);
  file_.write(head.data(), static_cast<std::streamsize>(head.size()));
  file_.seekp(end);
}

void RecordingWriter::before_update(const Trainer& /*trainer*/, const StepReport& /*report*/) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) before_[i].assign(parameters_[i].parameter->array());
}

void RecordingWriter::after_step(const Trainer& /*trainer*/, const StepReport& report) {
  append(report.step, report.lr);
  const auto now = std::chrono::steady_clock::now();
  if (now - flushed_ >= kFlushInterval || buffer_.size() * 2 > buffer_.capacity()) {
    flush();
    flushed_ = now;
  }
}

void RecordingWriter::append(std::int64_t step, double lr) {
  take_statistics(step);
  const bool values = step % layout_.every == 0 || step == last_;
  const std::size_t begin = buffer_.size();
  buffer_.resize(begin + static_cast<std::size_t>(layout_.head_bytes()));
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    set(buffer_, begin + layout_.entry_place(i),
        RecordEntry{statistics_[i], values ? append_values(i, step) : 0});
  set(buffer_, begin, RecordHead{0, step, lr, std::int64_t{values}});
  set(buffer_, begin, layout_.head_checksum(buffer_.data() + begin));
}

void RecordingWriter::take_statistics(std::int64_t step) {
  const auto take = [&](std::int64_t number) {
    const auto i = static_cast<std::size_t>(number);
    statistics_[i] = step_statistics(*parameters_[i].parameter, start_[i], step > 0 ? &before_[i] : nullptr);
  };
  constexpr std::int64_t kWorthForking = 1 << 15;
  const auto count = static_cast<std::int64_t>(parameters_.size());
  if (numel_ >= kWorthForking) {
    parallel_for(count, take);
  } else {
    for (std::int64_t i = 0; i < count; ++i) take(i);
  }
}

/// Gives their checksum.
std::uint64_t RecordingWriter::append_values(std::size_t i, std::int64_t step) {
  const Parameter& parameter = *parameters_[i].parameter;
  const std::size_t begin = buffer_.size(), bytes = parameter.array().bytes();
  dispatch(layout_.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* value = parameter.array().data<T>();
    put_bytes(buffer_, value, bytes);
    if (step > 0 && parameter.has_grad()) {
      put_bytes(buffer_, parameter.grad().data<T>(), bytes);
    } else {
      buffer_.resize(buffer_.size() + bytes);
    }
    if (layout_.every == 1) return;
    const T* before = before_[i].data<T>();
    for (std::int64_t k = 0; k < parameter.numel(); ++k) {
      const T update = value[k] - before[k];
      put_bytes(buffer_, &update, sizeof update);
    }
  });
  return checksum_of(buffer_.data() + begin, buffer_.size() - begin);
}

void RecordingWriter::flush() {
  if (buffer_.empty()) return;
  file_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  file_.flush();
  buffer_.clear();
  if (!file_) throw_recording(path_, std::string("cannot be written: ") + std::strerror(errno));
}

}  // namespace handgrad::train
