// One row of a model, or one of its modules: what `explain RUN --layer PATH` shows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/train/run.h"
#include "handgrad/view/explain/operation.h"
#include "handgrad/view/recorded.h"

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

/// Which module of which model to explain, and on which text.
struct ModelRequest {
  std::filesystem::path run;           ///< a run's folder, or a config
  std::vector<std::string> sets = {};  ///< keys of the config to override
  std::string layer = {};              ///< path of a module, or the end of one
  std::optional<std::string> at = {};  ///< a text: the row of its last token
  std::string then = {};  ///< the token that comes next; empty: the one the model finds most likely
  std::string row = {};   ///< "B,T": a row of the batch that the next step reads
  std::optional<std::int64_t> step = {};  ///< after this update; none: the last checkpoint
  double lr = 0.1;                        ///< of the SGD step
  bool json = true;                       ///< whether the plain form's JSON, every number of it, is wanted
  std::string command = {};  ///< to repeat the call: "handgrad explain runs/toy --layer final_norm"
};

/// One forward and backward pass of the model without dropout, recorded at one of its modules.
struct ModelPass {
  ModelState state;                    ///< the model
  nn::Module* module = nullptr;        ///< to explain
  std::string path;                    ///< of the module
  std::int64_t b = 0, t = 0;           ///< the row: number of the text, number of the token in it
  std::int64_t texts = 0, tokens = 0;  ///< B and T of the batch
  std::string token;                   ///< of the row, quoted; "token 17" when tokens have no text
  std::string place;                   ///< which row it is, for people
  std::vector<std::string> loss;       ///< what the loss is, in sentences
  Array x, y;           ///< input (undefined for token ids) and output of the module's first call
  RecordedGraph graph;  ///< what the module recorded
};

/// Runs the model. ValueError for a wrong request; Error for a run that cannot be read.
ModelPass run_model(const ModelRequest& request);

/// The page of a row of a norm, or the plain form of any other module.
Explanation explain_model(const ModelRequest& request);

/// The plain form: operations, shapes, what they saved, gradients.
Explanation explain_module(const ModelRequest& request, const ModelPass& pass);

}  // namespace handgrad::view::explain
