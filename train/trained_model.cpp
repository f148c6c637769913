#include "handgrad/train/trained_model.h"

#include <nlohmann/json.hpp>

#include "handgrad/models/registry.h"
#include "handgrad/nn/init.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/config.h"

namespace handgrad::train {

TrainedModel load_trained(const std::filesystem::path& folder) {
  const std::filesystem::path checkpoint = checkpoint_of(folder);
  const CheckpointState state = read_checkpoint_state(checkpoint);
  const auto document =
      ConfigDocument::from_json(nlohmann::ordered_json::parse(state.config), checkpoint, "state.json");
  io::Fields root = document.fields(io::Purpose::build);
  io::Fields section = root.object("model"), train = root.object("train");
  const nn::DrawGuard draw(nn::Draw::nothing);
  TrainedModel trained;
  trained.tokenizer = state.tokenizer;
  trained.model = models::registry().make(
      section, models::ModelContext{state.tokenizer ? state.tokenizer->vocab_size() : 0, state.seed});
  trained.model->to(read_train(train).dtype);
  load_weights(checkpoint, *trained.model);
  return trained;
}

}  // namespace handgrad::train
