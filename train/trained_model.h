// A trained model without its run: weights, and the tokenizer that gives its ids a meaning.
#pragma once

#include <filesystem>
#include <memory>

#include "handgrad/data/tokenizer.h"
#include "handgrad/models/model.h"

namespace handgrad::train {

/// What a checkpoint holds, ready to be used. Neither the data nor the optimizer's state are read.
struct TrainedModel {
  std::unique_ptr<models::Model> model;              ///< with its trained weights
  std::shared_ptr<const data::Tokenizer> tokenizer;  ///< nullptr when its ids are not text
};

/// From the last checkpoint of a run's folder, or from the folder of one checkpoint. Error when there is none, or when it
/// is damaged or of another model than its config says.
TrainedModel load_trained(const std::filesystem::path& folder);

}  // namespace handgrad::train
