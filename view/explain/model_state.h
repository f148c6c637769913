// A run in the state after one of its steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/train/run.h"

namespace handgrad::view::explain {

/// A model with the weights it had after update `step`.
struct ModelState {
  std::unique_ptr<train::Run> run;  ///< its trainer is at `step`
  std::int64_t step = 0;            ///< updates made
  std::int64_t last = 0;            ///< the last step in the run's recording or checkpoints
  std::string origin;               ///< "weights from checkpoint step-000300", "re-run from step 100 to 137"
};

/// Restores a run's folder, or builds a config's model, in the state after update `step`: from that step's checkpoint, or
/// by repeating the steps since the checkpoint before it, which gives the same bytes. Without `step`: the run's last
/// checkpoint, or first weights. `sets` overrides keys of the config. Error when the run has not reached the step, and
/// when the result differs from what the run recorded at that step. `check` receives the model before any step is
/// repeated, and may throw.
ModelState restore(const std::filesystem::path& run_or_config, const std::vector<std::string>& sets,
                   std::optional<std::int64_t> step, const std::function<void(train::Run&)>& check);

}  // namespace handgrad::view::explain
