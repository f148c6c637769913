// A row of a real model, or a module of it: what `explain RUN --layer PATH` shows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/train/explain/graph.h"
#include "handgrad/train/explain/model_state.h"
#include "handgrad/train/explain/operation.h"

namespace handgrad::train::explain {

/// Which module of which model, and on which text it is looked at.
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
  std::string command = {};  ///< that can be typed again: "handgrad explain runs/toy --layer final_norm"
};

/// One forward and backward pass of the model, as seen from one of its modules, without dropout.
struct ModelPass {
  ModelState state;                    ///< the model
  nn::Module* module = nullptr;        ///< that is looked at
  std::string path;                    ///< where it hangs
  std::int64_t b = 0, t = 0;           ///< the row: number of the text, number of the token in it
  std::int64_t texts = 0, tokens = 0;  ///< B and T of the batch
  std::string token;                   ///< of the row, quoted; or "token 17" where tokens are no text
  std::string place;                   ///< which row it is, for people
  std::vector<std::string> loss;       ///< what the loss is, in sentences
  Array x, y;           ///< input (undefined for token ids) and output of the module's first call
  RecordedGraph graph;  ///< what the module recorded
};

/// Runs the model. ValueError for a wrong request; Error for a run that cannot be read.
ModelPass run_model(const ModelRequest& request);

/// The page of a LayerNorm's row, or the plain form of any other module.
Explanation explain_model(const ModelRequest& request);

/// The plain form: operations, shapes, what they saved, gradients.
Explanation explain_module(const ModelRequest& request, const ModelPass& pass);

}  // namespace handgrad::train::explain
