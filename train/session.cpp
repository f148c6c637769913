#include "handgrad/train/session.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "handgrad/train/checkpoint.h"

namespace handgrad::train {

Session::Session(Run& run, RunFolder folder)
    : run_(run),
      folder_(std::move(folder)),
      metrics_(folder_.path(), run.trainer().step_count()),
      samples_(run, folder_.path()) {
  if (folder_.is_new()) describe();
  Trainer& trainer = run.trainer();
  trainer.add_observer(*this);
  if (!run.inspected().empty())
    recorder_ = std::make_unique<RecordingWriter>(folder_.recording(), run.trainer(), run.inspected(),
                                                  run.inspect().every, run.last_step());
  if (recorder_) trainer.add_observer(*recorder_);
  trainer.add_observer(metrics_);
  trainer.add_observer(samples_);
}

Session::~Session() = default;

void Session::describe() const {
  nlohmann::ordered_json meta = run_meta(run_.seed());
  meta["origins"] = origins();
  folder_.write_config(run_.effective());
  folder_.write_meta(meta);
}

/// Where each value of the config came from. A resumed run keeps the origins recorded at its start.
nlohmann::ordered_json Session::origins() const {
  std::ifstream file(folder_.path() / "meta.json");
  const auto before = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  const bool known = before.is_object() && before.contains("origins") && before["origins"].is_object();
  nlohmann::ordered_json origins = nlohmann::ordered_json::object();
  for (const auto& [key, origin] : run_.origins()) {
    const bool kept = known && origin != "command line" && before["origins"].contains(key);
    origins[key] = kept ? nlohmann::ordered_json(before["origins"][key]) : nlohmann::ordered_json(origin);
  }
  return origins;
}

/// The run has made progress: what the folder held before is not needed any more.
void Session::keep() {
  if (kept_) return;
  kept_ = true;
  if (!folder_.is_new()) describe();
  folder_.keep();
}

void Session::after_step(const Trainer& /*trainer*/, const StepReport& /*report*/) { keep(); }

Ending Session::train() {
  Trainer& trainer = run_.trainer();
  const std::int64_t last = run_.last_step();
  trainer.begin(evaluate());
  try {
    while (trainer.step_count() < last && !trainer.stop_requested()) {
      const std::int64_t step = trainer.step_count() + 1, every = run_.settings().checkpoint_every;
      trainer.step(validation_batches(step));
      if (every > 0 && step % every == 0) save();
    }
  } catch (NonFiniteError& error) {
    metrics_.add_non_finite(error.step(), trainer.next_lr());
    save();
    error.saved_in(saved_);
    throw;
  }
  save();
  return trainer.step_count() < last ? Ending::stopped : Ending::finished;
}

/// For the evaluation after `step`, 0 for all; none when no evaluation is due. The last one is over all of them.
std::optional<std::int64_t> Session::validation_batches(std::int64_t step) const {
  if (step == run_.last_step()) return 0;
  const std::int64_t every = run_.settings().eval_every;
  if (every > 0 && step % every == 0) return run_.settings().eval_batches;
  return std::nullopt;
}

/// Before the first step; for a new run over all batches.
std::optional<double> Session::evaluate() {
  Trainer& trainer = run_.trainer();
  if (!trainer.has_validation()) return std::nullopt;
  const std::int64_t step = trainer.step_count();
  const bool whole = step == 0 || step == run_.last_step();
  const double loss = trainer.validation_loss(whole ? 0 : run_.settings().eval_batches);
  trainer.keep_best(loss);
  return loss;
}

void Session::save() {
  keep();
  const std::vector<StepObserver*>& observers = run_.trainer().observers();
  for (StepObserver* observer : observers) observer->saving();
  const std::int64_t step = run_.trainer().step_count();
  if (step == saved_step_) return;
  saved_ = save_checkpoint(folder_.checkpoints(), run_.trainer(), run_.origin());
  saved_step_ = step;
  for (StepObserver* observer : observers) observer->saved(saved_);
}

}  // namespace handgrad::train
