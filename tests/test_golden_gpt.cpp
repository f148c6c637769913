// A small GPT against PyTorch's: logits, loss, every activation, every gradient, ten steps of each optimizer. The numbers
// come from tests/golden/gpt.py.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "handgrad/data/fixed_batch.h"
#include "handgrad/io/safetensors.h"
#include "handgrad/models/gpt.h"
#include "handgrad/optim/adam.h"
#include "handgrad/optim/schedule.h"
#include "handgrad/optim/sgd.h"
#include "handgrad/train/trainer.h"
#include "handgrad/view/trace.h"
#include "paths.h"

using namespace handgrad;

namespace {

struct Golden {
  const char* file;
  bool qkv_bias, tied;
};
const Golden kGoldens[] = {
    {"gpt_plain", false, false}, {"gpt_qkv_bias", true, false}, {"gpt_tied", true, true}};

std::string path_of(const Golden& golden) {
  return std::string(HANDGRAD_SOURCE_DIR "/tests/golden/") + golden.file + ".safetensors";
}

data::Batch batch_of(const io::SafetensorsReader& file) {
  const Array inputs = file.read("inputs"), targets = file.read("targets");
  data::Batch batch;
  batch.resize(inputs.shape()[0], inputs.shape()[1]);
  std::copy_n(inputs.data<std::int32_t>(), inputs.numel(), batch.inputs.begin());
  std::copy_n(targets.data<std::int32_t>(), targets.numel(), batch.targets.begin());
  return batch;
}

std::unique_ptr<models::GptModel> model_of(const Golden& golden, const io::SafetensorsReader& file,
                                           DType dtype) {
  auto model = std::make_unique<models::GptModel>(models::GptConfig{.vocab_size = 11,
                                                                    .context_length = 8,
                                                                    .emb_dim = 8,
                                                                    .n_heads = 2,
                                                                    .n_layers = 2,
                                                                    .qkv_bias = golden.qkv_bias,
                                                                    .tie_weights = golden.tied});
  model->to(dtype);
  for (const auto& named : model->named_parameters())
    named.parameter->mutable_array().assign(file.read("param." + named.name).to(dtype));
  return model;
}

double largest_of(const Array& array) {
  double largest = 0;
  for (const double x : array.values()) largest = std::max(largest, std::abs(x));
  return largest;
}

double largest_difference(const Array& a, const Array& b) {
  REQUIRE(a.shape() == b.shape());
  const auto x = a.values(), y = b.values();
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

std::string group_of(const std::string& name) { return name.substr(0, name.find('.')); }

bool is_trace_name(const std::string& name) {
  for (const char* group : {"loss", "logits", "grad", "act"})
    if (group_of(name) == group) return true;
  return false;
}

}  // namespace

TEST_CASE("PyTorch's GPT: logits, loss, activations and the gradient of every parameter") {
  for (const Golden& golden : kGoldens) {
    const io::SafetensorsReader file(path_of(golden));
    for (const DType dtype : {DType::float64, DType::float32}) {
      CAPTURE(std::string(golden.file));
      CAPTURE(std::string(name_of(dtype)));
      const auto model = model_of(golden, file, dtype);
      std::map<std::string, Array> ours;
      for (const auto& [name, array] : view::trace(*model, batch_of(file))) ours[name] = array;
      std::map<std::string, double> largest;
      for (const auto& entry : file.entries()) {
        double& of_group = largest[group_of(entry.name)];
        of_group = std::max(of_group, largest_of(file.read(entry)));
      }
      const double tolerance = dtype == DType::float64 ? 1e-10 : 2e-5;
      std::size_t compared = 0;
      for (const auto& entry : file.entries()) {
        if (!is_trace_name(entry.name)) continue;
        CAPTURE(entry.name);
        const Array expected = file.read(entry);
        REQUIRE(ours.count(entry.name) == 1);
        const double scale = std::max(largest_of(expected), 1e-3 * largest[group_of(entry.name)]);
        CHECK(largest_difference(ours[entry.name], expected) <= tolerance * scale);
        ++compared;
      }
      CHECK(compared >= 84);
    }
  }
}

TEST_CASE("PyTorch's GPT: ten steps of SGD, Adam and AdamW") {
  for (const Golden& golden : kGoldens) {
    const io::SafetensorsReader file(path_of(golden));
    for (const DType dtype : {DType::float64, DType::float32}) {
      for (const std::string name : {"sgd", "adam", "adamw"}) {
        CAPTURE(std::string(golden.file));
        CAPTURE(std::string(name_of(dtype)));
        CAPTURE(name);
        const auto model = model_of(golden, file, dtype);
        data::FixedBatch batch(batch_of(file));
        std::unique_ptr<optim::Optimizer> optimizer;
        if (name == "sgd") {
          optimizer = std::make_unique<optim::Sgd>(model->named_parameters(),
                                                   optim::SgdOptions{.lr = 0.1, .momentum = 0.9});
        } else {
          optimizer = std::make_unique<optim::Adam>(
              model->named_parameters(),
              optim::AdamOptions{
                  .lr = 1e-2, .betas = {0.9, 0.95}, .eps = 1e-8, .weight_decay = name == "adamw" ? 0.1 : 0},
              name == "adamw" ? optim::Decay::decoupled : optim::Decay::coupled);
        }
        const optim::ConstantSchedule schedule({.lr = name == "sgd" ? 0.1 : 1e-2});
        train::Trainer trainer(*model, batch, *optimizer, schedule, {});
        const bool wide = dtype == DType::float64;
        const auto losses = file.read(name + ".losses").values(),
                   losses32 = file.read(name + ".losses32").values();
        for (std::size_t step = 0; step < 10; ++step) {
          const double loss = trainer.step().loss;
          CHECK(std::abs(loss - losses[step]) <= (wide ? 1e-9 : 1e-5));
          if (!wide) CHECK(std::abs(loss - losses32[step]) <= 1e-5);
        }
        for (const auto& named : model->named_parameters()) {
          // The key's bias has no gradient but rounding, which Adam turns into whole steps.
          if (named.name.ends_with("W_key.bias")) continue;
          CAPTURE(named.name);
          const Array expected = file.read(name + "." + named.name);
          CHECK(largest_difference(named.parameter->array(), expected) <=
                (wide ? 1e-9 : 1e-3) * largest_of(expected));
        }
      }
    }
  }
}
