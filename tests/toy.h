// A small GPT with rows to learn from: what the tests of training share.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "expect.h"
#include "handgrad/data/fixed_batch.h"
#include "handgrad/models/gpt.h"
#include "handgrad/optim/adam.h"
#include "handgrad/optim/schedule.h"
#include "handgrad/optim/sgd.h"
#include "handgrad/train/trainer.h"

namespace handgrad::toy {

inline models::GptConfig config(double drop_rate = 0) {
  return {.vocab_size = 17,
          .context_length = 8,
          .emb_dim = 16,
          .n_heads = 2,
          .n_layers = 1,
          .drop_rate = drop_rate,
          .init = nn::Init::book};
}

/// Rows that depend on the step and on their number among all rows of the step, however those are cut into
/// micro-batches. The targets of rows from `ignore_from` on do not count.
class Rows final : public data::Dataset {
 public:
  Rows(std::int64_t rows, std::int64_t micro_batches, std::int64_t ignore_from = 1000)
      : Dataset({.rows = rows, .cols = 8, .micro_batches = micro_batches}), ignore_from_(ignore_from) {}

  void fill(data::Batch& batch, const data::Position& position) override {
    batch.resize(plan().rows, plan().cols);
    for (std::int64_t row = 0; row < plan().rows; ++row) {
      const std::int64_t number = position.micro_batch * plan().rows + row;
      std::int32_t tokens[9];
      for (std::int32_t i = 0; i < 9; ++i) {
        tokens[i] = static_cast<std::int32_t>((3 * position.step + 5 * number + i * (number + 1)) % 17);
      }
      batch.set_row(row, tokens);
      if (number >= ignore_from_) std::fill_n(batch.targets.begin() + row * 8, 8, kIgnoreIndex);
    }
  }
  std::int64_t batches_per_epoch() const override { return 1; }

 private:
  std::int64_t ignore_from_;
};

/// Model, rows, AdamW and trainer, connected.
struct Training {
  struct Options {
    DType dtype = DType::float32;
    double drop_rate = 0;
    std::int64_t rows = 4, micro_batches = 1, ignore_from = 1000;
    double lr = 1e-2, weight_decay = 0.1;
    train::TrainerOptions trainer = {.seed = 7};
    const data::EvaluationWindows* validation = nullptr;
  };

  explicit Training(const Options& options)
      : model(toy::config(options.drop_rate), 5),
        rows(options.rows, options.micro_batches, options.ignore_from),
        optimizer((model.to(options.dtype), model.named_parameters()),
                  {.lr = options.lr, .weight_decay = options.weight_decay}, optim::Decay::decoupled),
        schedule({.lr = options.lr, .min_lr = 0, .warmup_steps = 2, .decay_steps = 1000}),
        trainer(model, rows, optimizer, schedule, options.trainer, options.validation) {}

  /// Every weight of the model in one list.
  std::vector<Array> weights() const {
    std::vector<Array> all;
    for (const auto& named : model.named_parameters()) all.push_back(named.parameter->array().copy());
    return all;
  }

  models::GptModel model;
  Rows rows;
  optim::Adam optimizer;
  optim::CosineSchedule schedule;
  train::Trainer trainer;
};

inline bool same_bits(const std::vector<Array>& a, const std::vector<Array>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = expect::same_bits(a[i], b[i]);
  return same;
}

/// The largest difference between two lists of weights.
inline double farthest(const std::vector<Array>& a, const std::vector<Array>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::vector<double> va = a[i].values(), vb = b[i].values();
    for (std::size_t j = 0; j < va.size(); ++j) worst = std::max(worst, std::fabs(va[j] - vb[j]));
  }
  return worst;
}

}  // namespace handgrad::toy
