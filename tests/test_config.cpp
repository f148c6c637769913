// The config as a whole: what is rejected, which place the error names, and what a run folder keeps of it.
#include <doctest/doctest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "handgrad/io/json_text.h"
#include "handgrad/train/run.h"
#include "paths.h"
#include "temporary_folder.h"

namespace {

using namespace handgrad;
using nlohmann::json;

/// A small run over the project's own text; `change` edits the config before it is written.
struct Config {
  TemporaryFolder folder;
  json root = json::parse(R"({
    "seed": 1,
    "model": {"context_length": 8, "emb_dim": 8, "n_heads": 2, "n_layers": 1, "init": "book"},
    "data": {"path": ")" HANDGRAD_SOURCE_DIR R"(/data/boats.txt"},
    "optimizer": {"lr": 0.01},
    "train": {"steps": 4, "batch_size": 2}
  })");

  train::ConfigDocument load(const std::vector<std::string>& sets = {}) {
    std::ofstream(folder.path() / "run.json") << root.dump(2);
    return train::ConfigDocument::load(folder.path() / "run.json", sets);
  }
  std::string message(const std::vector<std::string>& sets = {}) {
    try {
      train::Run run(load(sets));
    } catch (const io::ConfigError& error) {
      return error.what();
    }
    return "(accepted)";
  }
  std::string file() const { return (folder.path() / "run.json").string(); }
};

}  // namespace

TEST_CASE("config: every default is filled in, and paths mean the same from anywhere") {
  Config config;
  const train::Run run(config.load({"train.steps=7"}));
  CHECK(run.steps() == 7);
  const auto& effective = run.effective();
  CHECK(effective["train"]["steps"] == 7);
  CHECK(effective["optimizer"]["type"] == "adamw");
  CHECK(effective["schedule"]["type"] == "constant");
  CHECK(effective["model"]["norm"]["eps"] == 1e-5);
  CHECK(effective["data"]["val_fraction"] == 0.1);
  // The effective config is a config: it describes the same run.
  const train::Run again(train::ConfigDocument::from_json(effective, config.folder.path()));
  CHECK(again.effective() == effective);
}

TEST_CASE("config: what does not fit is named by file, place and rule") {
  Config config;
  CHECK(config.message({"model.n_heads=3"}) ==
        "--set model.n_heads=3: /model/n_heads: must divide emb_dim = 8, got 3");
  config.root["train"]["batch_sise"] = 8;  // H78
  CHECK(config.message().rfind(
            config.file() + ": /train/batch_sise: unknown key; did you mean \"batch_size\"?", 0) == 0);
  config.root["train"].erase("batch_sise");
  config.root["train"]["batch_size"] = -4;  // H106
  CHECK(config.message() == config.file() + ": /train/batch_size: must be at least 1, got -4");
  config.root["train"]["batch_size"] = "2";
  CHECK(config.message().rfind(config.file() + ": /train/batch_size: must be an integer, got the text \"2\"",
                               0) == 0);
  config.root["train"]["batch_size"] = 2;
  config.root["train"].erase("steps");
  CHECK(config.message() == config.file() + ": /train/steps: must be given, or epochs in its place");
  config.root["train"]["steps"] = 4;
  config.root["train"]["epochs"] = 1;
  CHECK(config.message() == config.file() + ": /train/epochs: replaces steps; give one of them");
  CHECK(config.message({"steps"}) == "--set steps: must be KEY=VALUE, such as train.steps=500");
}

TEST_CASE("config: epochs on the command line replace the file's steps, and the other way round") {
  Config config;
  const train::Run epochs(config.load({"train.epochs=2"}));
  CHECK(epochs.effective()["train"]["epochs"] == 2);
  CHECK_FALSE(epochs.effective()["train"].contains("steps"));
  config.root["train"] = {{"epochs", 2}, {"batch_size", 2}};
  CHECK(train::Run(config.load({"train.steps=3"})).steps() == 3);
  CHECK(config.message({"train.steps=3", "train.epochs=2"}).find("replaces steps") != std::string::npos);
}

TEST_CASE("config: a mistake in the last section costs no model") {
  Config config;
  config.root["model"]["emb_dim"] = 1 << 20;  // a terabyte, if it were built
  config.root["model"]["n_layers"] = 100;
  config.root["inspect"]["evry"] = 2;
  CHECK(config.message().find("/inspect/evry: unknown key; did you mean \"every\"?") != std::string::npos);
}

TEST_CASE("config: epochs are counted in steps, freezing keeps parameters out of training") {
  Config config;
  config.root["train"].erase("steps");
  config.root["train"]["epochs"] = 2;
  config.root["data"]["sampling"] = "sequential";
  config.root["train"]["freeze"] = {"norm1.scale"};
  const train::Run run(config.load());
  const std::int64_t windows = (5429 - 8 - 1) / 8 + 1;
  CHECK(run.steps() == 2 * (windows / 2));
  CHECK(run.frozen() == std::vector<std::string>{"trf_blocks.0.norm1.scale"});
  CHECK(run.model().find_parameter("trf_blocks.0.norm1.scale")->frozen());
}
