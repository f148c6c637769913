#include "handgrad/train/session.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "handgrad/train/checkpoint.h"

namespace handgrad::train {

Session::Session(Run& run, RunFolder folder, SessionListener& listener)
    : run_(run),
      folder_(std::move(folder)),
      listener_(listener),
      metrics_(folder_.path(), run.trainer().step_count()),
      samples_(run, folder_.path()) {
  if (folder_.is_new()) describe();
  if (run.inspected().empty()) return;
  recorder_ = std::make_unique<RecordingWriter>(folder_.recording(), run.trainer(), run.inspected(),
                                                run.inspect().every, run.last_step());
  run.trainer().add_observer(*recorder_);
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

/// The run has got somewhere: what the folder held before is not needed any more.
void Session::keep() {
  if (kept_) return;
  kept_ = true;
  if (!folder_.is_new()) describe();
  folder_.keep();
}

Ending Session::train() {
  Trainer& trainer = run_.trainer();
  const std::int64_t last = run_.last_step();
  const std::optional<double> loss_before = evaluate(trainer.step_count());
  samples_.started(loss_before);
  listener_.started(run_, loss_before);
  try {
    while (trainer.step_count() < last && !trainer.stop_requested()) {
      const StepReport report = trainer.step();
      keep();
      std::optional<double> validation_loss;
      if (evaluation_due(report.step)) validation_loss = evaluate(report.step);
      metrics_.add(report, validation_loss);
      samples_.stepped(report.step);
      listener_.stepped(run_, report, validation_loss);
      const std::int64_t every = run_.settings().checkpoint_every;
      if (every > 0 && report.step % every == 0) save();
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

bool Session::evaluation_due(std::int64_t step) const {
  const std::int64_t every = run_.settings().eval_every;
  return step == run_.last_step() || (every > 0 && step % every == 0);
}

/// The first and the last evaluation use all validation data; those between may use a part.
std::optional<double> Session::evaluate(std::int64_t step) {
  Trainer& trainer = run_.trainer();
  if (!trainer.has_validation()) return std::nullopt;
  const bool whole = step == 0 || step == run_.last_step();
  const double loss = trainer.validation_loss(whole ? 0 : run_.settings().eval_batches);
  trainer.keep_best(loss);
  return loss;
}

void Session::save() {
  keep();
  metrics_.flush();
  if (recorder_) recorder_->flush();
  const std::int64_t step = run_.trainer().step_count();
  if (step == saved_step_) return;
  saved_ = save_checkpoint(folder_.checkpoints(), run_.trainer(), run_.origin());
  saved_step_ = step;
  listener_.saved(saved_);
}

}  // namespace handgrad::train
