// The main job as a user runs it: handgrad train, then a look at what it left.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "handgrad/core/kernels/table.h"
#include "program.h"
#include "temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<json> lines_of(const fs::path& path) {
  std::vector<json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  return lines;
}

/// The float32 that a shortest text stands for.
double as_float(const json& number) { return number.get<float>(); }

/// All that must not depend on the clock or the number of threads.
std::map<std::string, std::string> reproducible_files(const fs::path& run) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    const std::string name = fs::relative(entry.path(), run).generic_string();
    if (entry.is_regular_file() && name != "timing.jsonl" && name != "meta.json" && name != "log.txt")
      files[name] = read_file(entry.path());
  }
  return files;
}

}  // namespace

TEST_CASE("the toy learns: the loss falls below a quarter, every scale and shift moves") {
  const TemporaryFolder folder;
  const Outcome train = handgrad_in(folder.path(), "train " + config_path("toy.json") + " --out toy");
  REQUIRE_MESSAGE(train.status == 0, train.err);
  CHECK(train.out.find("largest |scale - 1|") != std::string::npos);
  CHECK(train.out.find("scale and shift after 300 steps") != std::string::npos);
  CHECK(train.out.find("text after") != std::string::npos);

  // The README shows this run, shortened. Without fused multiply-adds the last digits may differ.
  std::istringstream readme(read_file(HANDGRAD_SOURCE_DIR "/README.md"));
  std::string line;
  while (std::getline(readme, line) && line != "```text") continue;
  int shown = 0;
  while (std::getline(readme, line) && line != "```") {
    if (line.empty() || std::string(handgrad::kernels::target_name()) == "baseline") continue;
    CHECK_MESSAGE(train.out.find("\n" + line + "\n") != std::string::npos, line);
    ++shown;
  }
  CHECK((shown == 9 || std::string(handgrad::kernels::target_name()) == "baseline"));

  const auto metrics = lines_of(folder.path() / "toy" / "metrics.jsonl");
  REQUIRE(metrics.size() == 300);
  CHECK(metrics.front()["step"] == 1);
  const double first = metrics.front()["loss"];
  CHECK(metrics.back()["loss"].get<double>() < first / 4);
  CHECK(metrics.back()["val_loss"].get<double>() < first / 4);

  const json states = handgrad_in(folder.path(), "inspect toy --step last --values --format json").json();
  REQUIRE(states.size() == 6);
  double farthest = 0;
  for (const json& state : states) {
    const std::string name = state["name"];
    const double start = name.ends_with(".scale") ? 1 : 0;
    CHECK(state["values"].size() == 32);
    for (const double value : state["values"]) {
      CHECK_MESSAGE(value != start, name);
      if (start == 1) farthest = std::max(farthest, std::abs(value - 1));
    }
  }
  CHECK(farthest > 0.3);
}

TEST_CASE("inspect tells value, gradient and update for every step from 0 on") {
  const TemporaryFolder folder;
  const std::string short_run = " --out run --quiet --set train.steps=12 --set train.eval_every=0";
  REQUIRE(handgrad_in(folder.path(), "train " + config_path("toy_sgd.json") + short_run).status == 0);
  const json records =
      handgrad_in(folder.path(), "inspect run scale --step 0:12 --values --format json").json();
  REQUIRE(records.size() == 3 * 13);
  CHECK(records[0]["step"] == 0);
  CHECK(records[0]["gradient"].is_null());
  for (const double value : records[0]["values"]) CHECK(value == 1);

  // With plain SGD a scale is 1 - lr * (sum of the gradients that inspect shows), feature by feature.
  const double lr = 0.5;
  std::map<std::string, std::vector<double>> gradient_sum, update_sum;
  for (const json& record : records) {
    auto& sum = gradient_sum[record["name"]];
    auto& updates = update_sum[record["name"]];
    sum.resize(32);
    updates.resize(32);
    if (record["step"] == 0) continue;
    for (std::size_t i = 0; i < 32; ++i) {
      sum[i] += as_float(record["gradient"][i]);
      updates[i] += record["update"][i].get<double>();
      const double value = as_float(record["values"][i]);
      CHECK(std::abs(value - (1 - lr * sum[i])) < 2e-6);
      CHECK(std::abs(value - (1 + updates[i])) < 1e-12);
    }
  }
}

TEST_CASE("start + sum of updates is the value, for SGD, Adam and AdamW, at every step and parameter") {
  for (const char* optimizer :
       {"{\"type\":\"sgd\",\"lr\":0.1,\"momentum\":0.9}", "{\"type\":\"adam\",\"lr\":0.01}",
        "{\"type\":\"adamw\",\"lr\":0.01,\"weight_decay\":0.1}"}) {
    CAPTURE(optimizer);
    const TemporaryFolder folder;
    const Outcome train = handgrad_in(
        folder.path(), "train " + config_path("toy.json") +
                           " --out run --quiet --set train.steps=8 --set 'optimizer=" + optimizer +
                           "' --set 'inspect.parameters=[\"*\"]'");
    REQUIRE_MESSAGE(train.status == 0, train.err);
    const json records = handgrad_in(folder.path(), "inspect run --step 0:8 --values --format json").json();
    std::map<std::string, std::vector<double>> value;
    std::size_t compared = 0;
    for (const json& record : records) {
      auto& expected = value[record["name"]];
      if (record["step"] == 0) {
        for (const json& number : record["values"]) expected.push_back(as_float(number));
        continue;
      }
      double worst = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] += record["update"][i].get<double>();
        worst = std::max(worst, std::abs(expected[i] - as_float(record["values"][i])));
        ++compared;
      }
      CHECK(worst < 1e-12);
    }
    CHECK(compared == 8 * 15296);
  }
}

TEST_CASE("equal runs leave equal bytes, with 1, 2 and 3 threads") {
  const TemporaryFolder folder;
  std::map<std::string, std::string> reference;
  std::string inspected;
  const char* const runs[] = {"--threads 1", "--threads 2", "--threads 3", "--threads 2"};
  for (int i = 0; i < 4; ++i) {
    // A width and a context at which every kind of operation is cut into several chunks.
    const std::string arguments = "train " + config_path("toy.json") +
                                  " --quiet --out run --overwrite --set train.steps=6 --set model.emb_dim=64 "
                                  "--set model.context_length=48 --set model.drop_rate=0.1 --set "
                                  "train.accumulate=2 --set train.checkpoint_every=3 " +
                                  runs[i];
    const Outcome train = handgrad_in(folder.path(), arguments);
    REQUIRE_MESSAGE(train.status == 0, train.err);
    const auto files = reproducible_files(folder.path() / "run");
    const std::string text = handgrad_in(folder.path(), "inspect run --step 0:6 --values --format json").out;
    if (i == 0) {
      reference = files;
      inspected = text;
      CHECK(files.count("checkpoints/step-000006/model.safetensors") == 1);
      CHECK(files.count("checkpoints/step-000006/optimizer.safetensors") == 1);
      CHECK(files.count("metrics.jsonl") == 1);
      continue;
    }
    CHECK(text == inspected);
    CHECK(files.size() == reference.size());
    for (const auto& file : reference)
      CHECK_MESSAGE(files.at(file.first) == file.second, file.first, " with ", runs[i]);
  }
}

TEST_CASE("a run that was stopped goes on to the same bytes") {
  const TemporaryFolder folder;
  const std::string settings =
      " --quiet --set train.steps=10 --set model.drop_rate=0.2 --set train.eval_every=5";
  const std::string config = "train " + config_path("toy.json") + settings;
  REQUIRE(handgrad_in(folder.path(), config + " --out whole").status == 0);
  REQUIRE(handgrad_in(folder.path(), config + " --out parts --set train.stop_after=5").status == 0);
  REQUIRE(handgrad_in(folder.path(), "train --quiet --resume parts --set train.stop_after=0").status == 0);
  const auto whole = reproducible_files(folder.path() / "whole"),
             parts = reproducible_files(folder.path() / "parts");
  for (const char* name : {"metrics.jsonl", "inspect.bin", "checkpoints/step-000010/model.safetensors",
                           "checkpoints/step-000010/optimizer.safetensors"})
    CHECK_MESSAGE(whole.at(name) == parts.at(name), name);
}

TEST_CASE("a folder that holds a run is not overwritten unasked") {
  const TemporaryFolder folder;
  const std::string train = "train " + config_path("toy.json") + " --quiet --set train.steps=2 --out run";
  REQUIRE(handgrad_in(folder.path(), train).status == 0);
  const std::string before = read_file(folder.path() / "run" / "metrics.jsonl");
  const Outcome again = handgrad_in(folder.path(), train);
  CHECK(again.status == 1);
  CHECK(again.err ==
        "train: 'run' already holds a run\n"
        "  try: --overwrite, or another folder: --out runs/NAME, or go on with it: --resume run\n");
  CHECK(read_file(folder.path() / "run" / "metrics.jsonl") == before);
  CHECK(handgrad_in(folder.path(), train + " --overwrite").status == 0);
}

TEST_CASE("wrong calls end with one message and the right status") {
  const TemporaryFolder folder;
  struct Call {
    std::string arguments;
    int status;
    std::string message;
  };
  const std::string toy = HANDGRAD_SOURCE_DIR "/configs/toy.json";
  const std::vector<Call> calls = {
      {"train '" + toy + "' --set train.batch_sise=8", 2,
       "--set train.batch_sise=8: /train/batch_sise: unknown key; did you mean \"batch_size\"? (known: "},
      {"train '" + toy + "' --set model.n_heads=5", 2,
       "--set model.n_heads=5: /model/n_heads: must divide emb_dim = 32, got 5"},
      {"train '" + toy + "' --set model.norm.epss=1", 2,
       "/model/norm/epss: unknown key; did you mean \"eps\"?"},
      {"train '" + toy + "' --set model.norm.type=my_nrom", 2, "/model/norm/type: unknown norm \"my_nrom\""},
      {"train missing.json", 1, "missing.json"},
      {"train '" + toy + "' --pace fast", 2, "--pace must be steps per second or 'key', got 'fast'"},
      {"train", 2, "needs a config"},
      {"inspect nowhere", 1, "'nowhere' does not exist"},
      {"nonsense", 2, "try: handgrad --help"},
  };
  for (const Call& call : calls) {
    const Outcome outcome = handgrad_in(folder.path(), call.arguments);
    CAPTURE(call.arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.status == call.status);
    CHECK(outcome.err.find(call.message) != std::string::npos);
  }
}
