// The main job as a user runs it: handgrad train, then a look at what it left.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "decimal_comma.h"
#include "paths.h"
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
  for (const char* name : {"metrics.jsonl", "recording.bin", "checkpoints/step-000010/model.safetensors",
                           "checkpoints/step-000010/optimizer.safetensors"})
    CHECK_MESSAGE(whole.at(name) == parts.at(name), name);
}

TEST_CASE("a locale with a decimal comma changes no file and no table") {
  const DecimalComma locale;
  const TemporaryFolder folder;
  const std::string train = "train " + config_path("toy.json") + " --set train.steps=5 --out ";
  const Outcome plain = handgrad_in(folder.path(), train + "run");
  const auto files = reproducible_files(folder.path() / "run");
  fs::remove_all(folder.path() / "run");
  ::setenv("LC_ALL", locale.name(), 1);
  const Outcome german = handgrad_in(folder.path(), train + "run");
  const Outcome dry = handgrad_in(folder.path(), train + "dry --dry-run");
  ::unsetenv("LC_ALL");
  CHECK(german.status == 0);
  CHECK(dry.out.find("15,296") != std::string::npos);
  CHECK(reproducible_files(folder.path() / "run") == files);
  const auto table = [](const std::string& out) { return out.substr(0, out.find("validation loss")); };
  CHECK(table(german.out) == table(plain.out));
  if (!locale.exists()) MESSAGE("skipped: no locale with a decimal comma can be made");
}

TEST_CASE("folders and texts with spaces and accents work") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "O\u00f9 est le bateau ? \u00ab Ici \u00bb, dit Zo\u00eb.\n";
  std::ofstream(folder.path() / "un \u00e9t\u00e9 \u00e0 l'\u00eele.txt") << text;
  fs::copy_file(HANDGRAD_SOURCE_DIR "/configs/toy.json", folder.path() / "mon r\u00e9glage.json");
  const Outcome train = handgrad_in(
      folder.path(),
      "train \"mon r\u00e9glage.json\" --set \"data.path=un \u00e9t\u00e9 \u00e0 l'\u00eele.txt\" "
      "--set train.steps=5 --out \"mes essais/\u00e0 l'\u00eele\"");
  REQUIRE_MESSAGE(train.status == 0, train.err);
  // The suggested commands can be typed exactly as printed.
  const std::size_t at = train.out.find("handgrad inspect ");
  REQUIRE(at != std::string::npos);
  const std::string proposed = train.out.substr(at + 9, train.out.find("   ", at) - at - 9);
  CHECK(handgrad_in(folder.path(), proposed).status == 0);
  const Outcome text_out =
      handgrad_in(folder.path(), "generate \"mes essais/\u00e0 l'\u00eele\" --prompt \"O\u00f9\"");
  CHECK_MESSAGE(text_out.status == 0, text_out.err);
  CHECK(text_out.out.starts_with("O\u00f9"));
}

TEST_CASE("a dry run of a resumed run makes its steps with first weights, and writes nothing") {
  const TemporaryFolder folder;
  const std::string eps = " --set 'model.norm={\"type\": \"layer_norm\", \"eps\": 0}'";
  REQUIRE(handgrad_in(folder.path(),
                      "train " + config_path("toy.json") + eps + " --quiet --out run --set train.steps=2")
              .status == 0);
  const auto files = reproducible_files(folder.path() / "run");
  const Outcome dry = handgrad_in(folder.path(), "train --resume run --dry-run --set train.steps=4");
  CHECK_MESSAGE(dry.status == 0, dry.err);
  CHECK(reproducible_files(folder.path() / "run") == files);
}

TEST_CASE("a dry run counts, measures and writes nothing, and GPT-2 small has its known sizes") {
  const TemporaryFolder folder;
  const Outcome toy = handgrad_in(folder.path(), "train " + config_path("toy.json") + " --dry-run");
  REQUIRE_MESSAGE(toy.status == 0, toy.err);
  CHECK(toy.out.find("\nfinal_norm.scale                       [32]      32  no      layer_norm\n") !=
        std::string::npos);
  CHECK(toy.out.find("\n18 parameters                                15,296  of them 384 without decay\n") !=
        std::string::npos);
  CHECK(toy.out.find("memory    59.8 KiB of weights, 59.8 KiB of gradients\n") != std::string::npos);
  CHECK(toy.out.find("300 steps take ") != std::string::npos);
  CHECK(fs::is_empty(folder.path()));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  MESSAGE("skipped: GPT-2's size takes too long with sanitizers");
#else
  const std::string gpt2 = "train " + config_path("gpt2_124m.json") + " --dry-run --set train.accumulate=1";
  const Outcome untied = handgrad_in(folder.path(), gpt2);
  CHECK_MESSAGE(
      untied.out.find("\n161 parameters                                      163,009,536  of them ") !=
          std::string::npos,
      untied.out, untied.err);
  CHECK(untied.status == 0);
  const Outcome tied =
      handgrad_in(folder.path(), gpt2 + " --set model.tie_weights=true --set model.qkv_bias=true");
  CHECK(tied.out.find("  124,439,808  of them ") != std::string::npos);
#endif
}

TEST_CASE("pipes, NO_COLOR and narrow terminals: lines are never rewritten, nothing is colored") {
  const TemporaryFolder folder;
  const Outcome train =
      handgrad_in(folder.path(), "train " + config_path("toy.json") + " --set train.steps=20 --out run");
  for (const std::string& text : {train.out, train.err}) {
    CHECK(text.find('\r') == std::string::npos);
    CHECK(text.find('\x1b') == std::string::npos);
  }
  ::setenv("COLUMNS", "60", 1);
  const std::string toy = config_path("toy.json");
  for (const std::string& command :
       {"train " + toy + " --set train.steps=20 --out narrow", std::string("inspect run"),
        std::string("inspect run scale"), std::string("inspect run final_norm.scale"),
        std::string("inspect run --step 1:3"), std::string("--help"), std::string("inspect --help"),
        std::string("explain --help"), std::string("layers")}) {
    CAPTURE(command);
    std::istringstream lines(handgrad_in(folder.path(), command).out);
    for (std::string line; std::getline(lines, line);) {
      // Commands that can be typed are what they are.
      if (line.starts_with("next ") || line.starts_with("       handgrad ")) continue;
      const auto columns = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
      CHECK_MESSAGE(columns <= 60, line);
    }
  }
  ::unsetenv("COLUMNS");
}

TEST_CASE("a folder in which a run is under way is left alone") {
  const TemporaryFolder folder;
  const std::string train = "train " + config_path("toy.json") + " --set train.steps=40 --out run";
  const std::string again = "'" HANDGRAD_PROGRAM "' " + train;
  const Outcome second =
      handgrad_in(folder.path(), "--version; " + again + " --pace 20 >/dev/null & sleep 1; " + again +
                                     " --overwrite; status=$?; wait; exit $status");
  CHECK(second.status == 1);
  CHECK(read_file(folder.path() / "run" / "metrics.jsonl").find("\"step\": 40,") != std::string::npos);
}

TEST_CASE("a run whose output is closed saves and ends") {
  const TemporaryFolder folder;
  handgrad_in(folder.path(),
              "train " + config_path("toy.json") + " --set train.steps=30 --pace 20 --out run | head -n 1");
  CHECK(handgrad_in(folder.path(), "train --resume run --quiet").status == 0);
  CHECK(read_file(folder.path() / "run" / "metrics.jsonl").find("\"step\": 30,") != std::string::npos);
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
        "  try: --overwrite, or another folder: --out runs/NAME, or resume it: --resume run\n");
  CHECK(read_file(folder.path() / "run" / "metrics.jsonl") == before);
  std::ofstream(folder.path() / "run" / "meta.json.unfinished") << "{";  // as a kill leaves it
  CHECK(handgrad_in(folder.path(), train + " --overwrite").status == 0);
  CHECK(!std::filesystem::exists(folder.path() / "run" / "meta.json.unfinished"));
}

TEST_CASE("what is recorded unasked: everything that the norms learn, whatever it is called") {
  const TemporaryFolder folder;
  const std::string toy =
      "train " + config_path("toy.json") + " --set train.steps=3 --set train.eval_every=0";
  const Outcome usual = handgrad_in(folder.path(), toy + " --out usual");
  REQUIRE_MESSAGE(usual.status == 0, usual.err);
  CHECK(usual.out.find("next   handgrad inspect usual scale shift ") != std::string::npos);
  const std::string by_name = R"( --quiet --out by_name --set 'inspect.parameters=["*.scale", "*.shift"]')";
  REQUIRE(handgrad_in(folder.path(), toy + by_name).status == 0);
  CHECK(read_file(folder.path() / "usual" / "recording.bin") ==
        read_file(folder.path() / "by_name" / "recording.bin"));

  const Outcome rms = handgrad_in(folder.path(), toy + " --out rms --set model.norm.type=rms_norm");
  CHECK(rms.out.find("next   handgrad inspect rms scale  ") != std::string::npos);
  const Outcome none = handgrad_in(folder.path(), toy + R"( --out none --set 'model.norm={"type": "none"}')");
  REQUIRE_MESSAGE(none.status == 0, none.err);
  CHECK(none.out.find("handgrad inspect") == std::string::npos);
  CHECK(none.out.find("next   handgrad generate none") != std::string::npos);
}

TEST_CASE("manual needs man or bash, and bash completes only words that the program takes") {
  const TemporaryFolder folder;
  CHECK(handgrad_in(folder.path(), "manual").err ==
        "manual: needs man or bash\n  try: handgrad manual --help\n");
  const std::string script = handgrad_in(folder.path(), "manual bash").out;
  CHECK(script.find("-h,") == std::string::npos);
  CHECK(script.find("'layers') words='--json --help' ;;") != std::string::npos);
  CHECK(script.find("manual") == std::string::npos);
}
