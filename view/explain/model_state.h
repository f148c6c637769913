// A run as it stood after one of its steps.
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
  std::unique_ptr<train::Run> run;  ///< its trainer stands at `step`
  std::int64_t step = 0;            ///< updates made
  std::int64_t last = 0;            ///< as far as the run's recording or its checkpoints go
  std::string origin;               ///< "weights from checkpoint step-000300", "re-run from step 100 to 137"
};

/// Restores a run's folder, or builds a config's model, as it stands after update `step`: at once where there is a
/// checkpoint of it, else by repeating the steps since the checkpoint before, which gives the same bytes. Without `step`
/// the run's last checkpoint, or first weights. `sets`: keys of the config to override. Error when the run has not come so
/// far, and when what comes out is not what the run recorded at that step.
/// `check` sees the model before any step is repeated, and may refuse it.
ModelState restore(const std::filesystem::path& run_or_config, const std::vector<std::string>& sets,
                   std::optional<std::int64_t> step, const std::function<void(train::Run&)>& check);

}  // namespace handgrad::view::explain
