// Trainer: the training loop. It computes; it writes no file, prints nothing and reads no clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/data/dataset.h"
#include "handgrad/data/windows.h"
#include "handgrad/models/model.h"
#include "handgrad/optim/clip.h"
#include "handgrad/optim/optimizer.h"
#include "handgrad/optim/schedule.h"
#include "handgrad/train/training_errors.h"

namespace handgrad::train {

class Trainer;

/// What a step computed.
struct StepReport {
  std::int64_t step = 0;    ///< number of this update, from 1
  double loss = 0;          ///< mean over the tokens of all micro-batches, with the weights before the update
  double lr = 0;            ///< learning rate of this update
  double grad_norm = 0;     ///< global norm, before clipping
  double clip_factor = 1;   ///< what the gradients were multiplied with in the update
  std::int64_t tokens = 0;  ///< targets that count, those that are ignored left out; 0: nothing to learn from
  /// Trainable parameters that the update skipped because they had no gradient; each name in one report only.
  std::vector<std::string> skipped = {};
  std::optional<double> validation_loss = {};  ///< with the weights after the update, when it was measured
};

/// Sees a training run; it must change nothing.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  /// Before the first step of this process, at step 0 of a new run or the last step of a resumed one; with the validation
  /// loss when it was measured.
  virtual void begin(const Trainer& /*trainer*/, std::optional<double> /*validation_loss*/) {}
  /// Gradients are complete and were found finite; the parameters are still those before the update.
  virtual void before_update(const Trainer& /*trainer*/, const StepReport& /*report*/) {}
  /// The parameters are updated; the gradients are still there, unclipped.
  virtual void after_step(const Trainer& /*trainer*/, const StepReport& /*report*/) {}
  /// A checkpoint of the last step is about to be written, or the run ends there: what is buffered must be in the files.
  virtual void saving() {}
  virtual void saved(const std::filesystem::path& /*checkpoint*/) {}  ///< a checkpoint is complete
};

/// What a trainer is told beside its parts.
struct TrainerOptions {
  std::uint64_t seed = 0;     ///< of dropout; data and initial weights have their own sources
  double grad_clip = 0;       ///< largest global norm of the gradients; 0: off
  bool allow_unused = false;  ///< whether trainable parameters may get no gradient
  bool check_non_finite =
      false;  ///< looks at every operation of every step, not only when the loss has gone wrong
  /// Set from outside, by a signal handler for instance: `run` then stops after the current step.
  const std::atomic<bool>* stop = nullptr;
};

/// Trains a model step by step. All that it is given must outlive it.
///
///     Trainer trainer(model, dataset, optimizer, schedule, {.seed = 2266, .grad_clip = 1});
///     while (trainer.step_count() < 300) std::cout << trainer.step().loss << '\n';
///
/// A step is: for each micro-batch of the dataset's plan forward, loss and backward, gradients adding up to those of
/// the mean over all tokens of the step; then the norm, the checks, the update. It depends on the weights, the
/// optimizer's state, the options and the number of the step, and on nothing else: that is why a resumed run
/// continues with the same bits. In steady state it asks the system for no memory.
class Trainer {
 public:
  /// ValueError when grad_clip is negative or not finite.
  Trainer(models::Model& model, data::Dataset& training, optim::Optimizer& optimizer,
          const optim::Schedule& schedule, const TrainerOptions& options,
          const data::EvaluationWindows* validation = nullptr);

  /// Tells the observers that training begins. step() does it when it was not called before.
  void begin(std::optional<double> validation_loss = {});
  /// One update, followed by an evaluation on `validation_batches` (0: all) when they are given and there is validation
  /// data. NonFiniteError and UnusedParameterError, both before anything was updated.
  StepReport step(std::optional<std::int64_t> validation_batches = {});
  /// Steps until `step_count()` is `last`, or a stop is requested. Whether it got there.
  bool run(std::int64_t last);
  /// Whether `stop` is set.
  bool stop_requested() const { return options_.stop != nullptr && options_.stop->load(); }

  /// Observers are called in the order in which they were added.
  void add_observer(StepObserver& observer) { observers_.push_back(&observer); }
  const std::vector<StepObserver*>& observers() const { return observers_; }  ///< in that order

  /// Mean loss over the tokens of the validation windows, or of their first `max_batches` batches (0: all), without
  /// dropout and without history; the mean is made in double. Training continues as if it had not been called.
  /// ValueError without validation data.
  double validation_loss(std::int64_t max_batches = 0);
  bool has_validation() const { return validation_ != nullptr; }  ///< whether there is validation data

  /// Updates made so far, those of the runs that this one continues included.
  std::int64_t step_count() const { return step_; }
  /// The rate that the next step will use.
  double next_lr() const { return schedule_.lr(step_); }

  /// The smallest validation loss that `keep_best` was told.
  std::optional<double> best_loss() const { return best_loss_; }
  /// Notes `loss`; whether it is smaller than all before.
  bool keep_best(double loss);

  /// Continues a run: the next step is number `step_count` + 1. For checkpoints.
  void restore(std::int64_t step_count, std::optional<double> best_loss);

  /// @{ What it was given.
  models::Model& model() const { return model_; }
  data::Dataset& training() const { return training_; }
  optim::Optimizer& optimizer() const { return optimizer_; }
  const optim::Schedule& schedule() const { return schedule_; }
  const TrainerOptions& options() const { return options_; }
  /// @}
  /// Every parameter under its name, frozen ones too, tied ones once; in the order of the model.
  const optim::Parameters& parameters() const { return parameters_; }

 private:
  std::int64_t read_batches();
  double forward_and_backward(std::int64_t tokens);
  Tensor loss_of(std::size_t micro_batch, std::int64_t tokens);
  void check_unused() const;
  void check_norm(const optim::GradientNorm& norm, std::int64_t tokens);
  NonFinite find_again(std::int64_t tokens);
  double watched_forward_and_backward(std::int64_t tokens);

  models::Model& model_;
  data::Dataset& training_;
  optim::Optimizer& optimizer_;
  const optim::Schedule& schedule_;
  TrainerOptions options_;
  const data::EvaluationWindows* validation_;
  optim::Parameters parameters_;
  std::vector<StepObserver*> observers_;
  std::vector<data::Batch> batches_;  // of the step: all its micro-batches
  data::Batch validation_batch_;
  optim::GlobalNorm global_norm_;
  std::int64_t step_ = 0;
  std::optional<double> best_loss_;
  bool begun_ = false;
};

}  // namespace handgrad::train
