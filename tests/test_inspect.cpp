// What inspect shows beyond recorded values: statistics of steps without values, parameters that only checkpoints hold,
// gradients, updates and moments.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "handgrad/io/safetensors.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/history.h"
#include "handgrad/view/inspect.h"
#include "program.h"
#include "temporary_folder.h"

using namespace handgrad;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

/// Twelve steps of the toy, with checkpoints after 5, 10 and 12.
void train_toy(const fs::path& folder, const std::string& more) {
  const Outcome run = handgrad_in(folder, "train " + config_path("toy.json") +
                                              " --quiet --set train.steps=12 --set train.eval_every=0 --set "
                                              "train.checkpoint_every=5 " +
                                              more);
  REQUIRE_MESSAGE(run.status == 0, run.err);
}

json inspected(const fs::path& folder, const std::string& arguments) {
  const Outcome outcome = handgrad_in(folder, "inspect " + arguments + " --json");
  CHECK_MESSAGE(outcome.status == 0, outcome.err);
  return outcome.json();
}

/// The file's numbers in the program's digits.
json numbers_of(const fs::path& file, const std::string& name) {
  json numbers = json::array();
  const io::SafetensorsReader reader(file);
  for (const double number : reader.read(name).values()) numbers.push_back(number);
  return numbers;
}

std::vector<float> floats(const json& numbers) {
  std::vector<float> all;
  for (const json& number : numbers) all.push_back(number.get<float>());
  return all;
}

}  // namespace

TEST_CASE("statistics: of every step the same as those of the recorded values, bit for bit") {
  const TemporaryFolder folder;
  for (const char* dtype : {"float32", "float64"}) {
    CAPTURE(dtype);
    const std::string all = std::string(" --overwrite --set 'inspect.parameters=[\"*\"]' --dtype ") + dtype;
    train_toy(folder.path(), "--out each" + all);
    train_toy(folder.path(), "--out fourth --threads 2 --set inspect.every=4" + all);
    const train::Recording each(folder.path() / "each" / train::kRecordingFile);
    const train::Recording kept(folder.path() / "fourth" / train::kRecordingFile);
    REQUIRE(kept.last_step() == 12);
    REQUIRE(kept.parameters().size() == 18);
    for (std::size_t i = 0; i < kept.parameters().size(); ++i) {
      CHECK(kept.parameters()[i] == each.parameters()[i]);
      for (std::int64_t step = 0; step <= 12; ++step) {
        CAPTURE(step);
        const train::RecordedStep recorded = each.read(i, step);
        const train::Statistics s = train::statistics(recorded.value, each.read(i, 0).value);
        const train::StepStatistics k = kept.statistics(i, step);
        CHECK(each.statistics(i, step).update_norm == k.update_norm);
        CHECK(k.value.mean == s.mean);
        CHECK(k.value.std == s.std);
        CHECK(k.value.min == s.min);
        CHECK(k.value.max == s.max);
        CHECK(k.value.farthest == s.farthest);
        CHECK(k.value.farthest_value == recorded.value[s.farthest]);
        CHECK(k.gradient_norm == (step == 0 ? -1 : train::norm_of(recorded.gradient)));
        CHECK(k.update_norm == (step == 0 ? -1 : train::norm_of(recorded.update)));
        CHECK(kept.lr(step) == recorded.lr);
      }
    }
    CHECK(inspected(folder.path(), "each") == inspected(folder.path(), "fourth"));
    CHECK(handgrad_in(folder.path(), "inspect each scale --step 3:6").out ==
          handgrad_in(folder.path(), "inspect fourth scale --step 3:6").out);
    const auto picture = [&](const std::string& run) {
      const std::string out = handgrad_in(folder.path(), "inspect " + run).out;
      return out.substr(0, out.find("\nnext "));
    };
    CHECK(picture("each") == picture("fourth"));
  }
}

TEST_CASE("statistics: the mean, the spread, the extremes and the first of the farthest") {
  const train::Statistics s = train::statistics({1, 5, -3, 5}, {1, 1, 1, 1});
  CHECK(s.mean == 2);
  CHECK(s.std == doctest::Approx(std::sqrt(11.0)));
  CHECK(s.min == -3);
  CHECK(s.max == 5);
  CHECK(s.farthest == 1);
  CHECK(s.farthest_value == 5);
  CHECK(train::statistics({1, std::nan(""), 9, std::nan("")}, {}).farthest == 1);
  CHECK(train::norm_of({3, -4}) == 5);
}

TEST_CASE("statistics: a run that was stopped or killed goes on to the same bytes") {
  const TemporaryFolder folder;
  const std::string every = " --set inspect.every=4";
  train_toy(folder.path(), "--out whole" + every);
  const std::string whole = read_file(folder.path() / "whole" / train::kRecordingFile);
  train_toy(folder.path(), "--out parts --set train.stop_after=7" + every);
  CHECK(handgrad_in(folder.path(), "train --quiet --resume parts --set train.stop_after=0").status == 0);
  CHECK(read_file(folder.path() / "parts" / train::kRecordingFile) == whole);

  // As a kill leaves it: steps after the last checkpoint, and a part of a record.
  train_toy(folder.path(), "--out killed" + every);
  fs::remove_all(folder.path() / "killed" / "checkpoints" / "step-000012");
  const fs::path file = folder.path() / "killed" / train::kRecordingFile;
  fs::resize_file(file, fs::file_size(file) - 5);
  CHECK(train::Recording(file).last_step() == 11);
  CHECK(inspected(folder.path(), "killed scale --step 11").size() == 3);
  CHECK(handgrad_in(folder.path(), "train --quiet --resume killed").status == 0);
  CHECK(read_file(file) == whole);
  // Cut off before the last checkpoint, and lost.
  fs::resize_file(file, static_cast<std::uintmax_t>(train::Recording(file).place_of(9)));
  fs::remove_all(folder.path() / "killed" / "checkpoints" / "step-000012");
  CHECK(handgrad_in(folder.path(), "train --quiet --resume killed").err ==
        "inspect: 'killed/recording.bin': ends at step 8, before step 10, where the run continues\n"
        "  try: remove the checkpoints of later steps, or train again\n");
  std::ofstream(file) << "junk";
  CHECK(handgrad_in(folder.path(), "inspect killed").err ==
        "inspect: 'killed/recording.bin': is not a recording of a training run\n");
  fs::remove(file);
  CHECK(handgrad_in(folder.path(), "train --quiet --resume killed").err ==
        "inspect: 'killed/recording.bin': cannot be read: No such file or directory\n");
}

TEST_CASE("recording: a damaged record is named, and a resumed run replaces it") {
  const TemporaryFolder folder;
  train_toy(folder.path(), "--out run --set inspect.every=4");
  const fs::path file = folder.path() / "run" / train::kRecordingFile;
  const std::string whole = read_file(file);
  std::string bytes = whole;
  std::fill(bytes.end() - 400, bytes.end(), '\xff');
  std::ofstream(file, std::ios::binary) << bytes;
  const Outcome outcome = handgrad_in(folder.path(), "inspect run final_norm.shift --step 12 --values");
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("run/recording.bin': the record of step 12 is damaged") != std::string::npos);
  CHECK(handgrad_in(folder.path(), "report run").status == 1);
  fs::remove_all(folder.path() / "run" / "checkpoints" / "step-000012");
  CHECK(handgrad_in(folder.path(), "train --resume run --quiet").status == 0);
  CHECK(read_file(file) == whole);
}

TEST_CASE("inspect: steps without values have statistics in tables and JSON, and no line in CSV") {
  const TemporaryFolder folder;
  train_toy(folder.path(), "--out run --set inspect.every=4");
  const json states = inspected(folder.path(), "run final_norm.scale --step 3:5 --values");
  REQUIRE(states.size() == 3);
  CHECK(!states[0].contains("values"));
  CHECK(states[1]["values"].size() == 32);
  CHECK(states[1]["gradient"].size() == 32);
  CHECK(states[0]["gradient_norm"].get<double>() > 0);
  std::istringstream csv(
      handgrad_in(folder.path(), "inspect run final_norm.scale --step 3:5 --format csv").out);
  std::string line;
  std::getline(csv, line);
  int lines = 0;
  while (std::getline(csv, line)) {
    CHECK(line.starts_with("4,final_norm.scale,"));
    ++lines;
  }
  CHECK(lines == 32);
  const std::string table =
      handgrad_in(folder.path(), "inspect run final_norm.scale --step 3:4 --values").out;
  CHECK(table.find("no values at this step") != std::string::npos);
  CHECK(handgrad_in(folder.path(), "inspect run final_norm.scale").out.find("steps 0 to 12, every 4;") !=
        std::string::npos);
}

TEST_CASE("inspect: what was not recorded comes from the checkpoints") {
  const TemporaryFolder folder;
  train_toy(folder.path(), "--out run");
  train_toy(folder.path(), "--out none --set 'inspect.parameters=[]'");
  CHECK(!fs::exists(folder.path() / "none" / train::kRecordingFile));
  const json states = inspected(folder.path(), "run out_head.weight --values");
  REQUIRE(states.size() == 3);
  const int saved[] = {5, 10, 12};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(states[i]["step"] == saved[i]);
    CHECK(floats(states[i]["values"]) ==
          floats(numbers_of(
              folder.path() / "run" / "checkpoints" / train::checkpoint_name(saved[i]) / "model.safetensors",
              "out_head.weight")));
    CHECK(states[i]["gradient"].is_null());
  }
  CHECK(inspected(folder.path(), "none out_head.weight --values") == states);
  const Outcome table = handgrad_in(folder.path(), "inspect run out_head.weight");
  CHECK(table.out.find("\n     10 ") != std::string::npos);
  CHECK(
      table.out.ends_with("\nnot recorded: values at the checkpoints, steps 5, 10, 12; to record it, train "
                          "with\n  --set 'inspect.parameters=[\"*norm*\",\"out_head.weight\"]'\n"));
  CHECK(handgrad_in(folder.path(), "inspect run scale").out.find("not recorded") == std::string::npos);
  CHECK(inspected(folder.path(), "none --step last").size() == 18);
  CHECK(inspected(folder.path(), "run '*' --step last").size() == 18);
  CHECK(inspected(folder.path(), "run --step last").size() == 6);
}

TEST_CASE("inspect: gradients and updates of the recording, moments of the checkpoints") {
  const TemporaryFolder folder;
  train_toy(folder.path(), "--out run");
  train_toy(folder.path(), "--out sgd --set 'optimizer={\"type\": \"sgd\", \"lr\": 0.1, \"momentum\": 0.9}'");
  const json values = inspected(folder.path(), "run final_norm.shift --step 1:12 --values");
  for (const char* of : {"gradient", "update"}) {
    CAPTURE(of);
    const json shown = inspected(folder.path(), std::string("run final_norm.shift --values --of ") + of);
    REQUIRE(shown.size() == 12);
    for (std::size_t i = 0; i < 12; ++i) {
      CHECK(shown[i]["of"] == of);
      CHECK(shown[i]["values"] == values[i][of]);
      const double norm = train::norm_of(shown[i]["values"].get<std::vector<double>>());
      CHECK(shown[i][std::string(of) + "_norm"].get<double>() == doctest::Approx(norm));
    }
  }
  struct Moment {
    const char *run, *of, *state;
  };
  const Moment moments[] = {{"run", "first_moment", "exp_avg"},
                            {"run", "second_moment", "exp_avg_sq"},
                            {"sgd", "first_moment", "momentum"}};
  for (const Moment& m : moments) {
    CAPTURE(m.of);
    for (const std::string name : {"out_head.weight", "final_norm.scale"}) {
      const json shown =
          inspected(folder.path(), std::string(m.run) + " " + name + " --step 10 --values --of " + m.of);
      REQUIRE(shown.size() == 1);
      CHECK(floats(shown[0]["values"]) ==
            floats(numbers_of(folder.path() / m.run / "checkpoints" / "step-000010" / "optimizer.safetensors",
                              name + "." + m.state)));
    }
  }
  const Outcome csv =
      handgrad_in(folder.path(), "inspect run final_norm.scale --of second_moment --step last --format csv");
  CHECK(csv.out.starts_with("step,name,index,second_moment\n12,final_norm.scale,0,"));
  const Outcome picture = handgrad_in(folder.path(), "inspect run --of gradient");
  CHECK(picture.out.starts_with("|gradient|, steps 1 to 12; each line is drawn to its own height\n"));
}

TEST_CASE("inspect: every table of every quantity keeps within 60 and within 100 columns") {
  const TemporaryFolder folder;
  train_toy(folder.path(), "--out run --set inspect.every=4");
  for (const int columns : {60, 100}) {
    ::setenv("COLUMNS", std::to_string(columns).c_str(), 1);
    for (const std::string of : {"value", "gradient", "update", "first_moment", "second_moment"}) {
      for (const std::string rest : {"", " scale", " final_norm.scale",
                                     " final_norm.scale --step 8:12 --values", " '*' --step last"}) {
        const std::string arguments = "inspect run --of " + of + rest;
        CAPTURE(arguments);
        const Outcome outcome = handgrad_in(folder.path(), arguments);
        CHECK_MESSAGE(outcome.status == 0, outcome.err);
        std::istringstream lines(outcome.out);
        for (std::string line; std::getline(lines, line);) {
          if (line.starts_with("next ") || line.starts_with("       handgrad ") ||
              line.starts_with("  --set "))
            continue;
          const auto width =
              std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
          CHECK_MESSAGE(width <= columns, line);
        }
      }
    }
    ::unsetenv("COLUMNS");
  }
}

TEST_CASE("inspect: quantities and steps that are not there, in whole messages") {
  const TemporaryFolder folder;
  train_toy(folder.path(), "--out run --set inspect.every=4");
  train_toy(folder.path(), "--out sgd --set 'optimizer={\"type\": \"sgd\", \"lr\": 0.1}'");
  train_toy(folder.path(), "--out frozen --set 'train.freeze=[\"*.shift\"]'");
  const std::string recorded =
      "  recorded  trf_blocks.0.norm1.scale, trf_blocks.0.norm1.shift, trf_blocks.0.norm2.scale and 3 more; "
      "12 others are in the checkpoints\n";
  const std::pair<const char*, std::string> calls[] = {
      {"run nope", "inspect run: nothing recorded is named 'nope'\n" + recorded +
                       "  try: a name, a part of one (scale, norm1) or a pattern ('*.scale'); "
                       "inspect.parameters of the config "
                       "chooses\n"},
      {"run out_head.weight --of gradient",
       "inspect run: there is no gradient of out_head.weight: it was not recorded, and checkpoints hold "
       "values "
       "and moments\n" +
           recorded +
           "  try: --of value, or train with --set 'inspect.parameters=[\"*norm*\",\"out_head.weight\"]'\n"},
      {"sgd --of second_moment",
       "inspect sgd: there is no second_moment: its optimizer, sgd, does not keep it\n"
       "  kept  nothing\n"
       "  try: --of value, gradient or update\n"},
      {"frozen final_norm.shift --of first_moment",
       "inspect frozen: there is no first_moment of final_norm.shift: it was never updated\n"},
      {"run scale --of update --step 0",
       "inspect run: no step 0; it is the state before training, which has no update\n"
       "  recorded  steps 0 to 12, every step; values every 4 steps\n"
       "  try: --step 1\n"},
      {"run scale --step 6 --format csv",
       "inspect run: step 6 has statistics, no values\n"
       "  recorded  steps 0 to 12, every step; values every 4 steps\n"
       "  try: --step 4\n"},
      {"run scale --step 13",
       "inspect run: no step 13; this run has 12 steps\n"
       "  recorded  steps 0 to 12, every step; values every 4 steps\n"
       "  try: --step last\n"},
      {"run out_head.weight --step 7",
       "inspect run: no step 7; out_head.weight is known at the checkpoints only\n"
       "  checkpoints  steps 5, 10, 12\n"
       "  try: --step 5\n"},
      {"run --of momentum",
       "inspect: --of must be value, gradient, update, first_moment or second_moment, got momentum\n"
       "  try: handgrad inspect --help\n"},
      {"run/recording.bin", "inspect: 'run/recording.bin' is a part of a run\n  try: handgrad inspect run\n"},
      {"run/checkpoints",
       "inspect: 'run/checkpoints' holds checkpoints\n"
       "  try: one of them, or the run: handgrad inspect run\n"},
      {"run/config.json",
       "inspect: 'run/config.json' is not a safetensors file\n"
       "  try: a run's folder, a checkpoint's, or a safetensors file; a config: handgrad config show "
       "run/config.json\n"},
      {"run/checkpoints/step-000010/model.safetensors --of gradient",
       "inspect: 'run/checkpoints/step-000010/model.safetensors' is a file with one state: --of belongs to a "
       "run\n"
       "  try: leave --of out, or name a run folder\n"},
  };
  for (const auto& call : calls) {
    CAPTURE(call.first);
    const Outcome outcome = handgrad_in(folder.path(), std::string("inspect ") + call.first);
    CHECK(outcome.err == call.second);
    CHECK(outcome.out == "");
    CHECK(outcome.status > 0);
  }
  // A checkpoint is its weights, in every format.
  const std::string checkpoint = "inspect run/checkpoints/step-000010";
  const std::string table = handgrad_in(folder.path(), checkpoint + " final_norm").out;
  CHECK(table == handgrad_in(folder.path(), checkpoint + "/model.safetensors final_norm").out);
  const json weights = handgrad_in(folder.path(), checkpoint + " final_norm --json --values").json();
  REQUIRE(weights.size() == 2);
  CHECK(weights[0]["name"] == "final_norm.scale");
  const json shown =
      handgrad_in(folder.path(), "inspect run out_head.weight --step 10 --json --values").json();
  const json saved = handgrad_in(folder.path(), checkpoint + " out_head.weight --json --values").json();
  for (const char* key : {"name", "shape", "mean", "std", "min", "max", "values"})
    CHECK_MESSAGE(saved[0][key] == shown[0][key], key);
  const std::string csv = handgrad_in(folder.path(), checkpoint + " final_norm.scale --format csv").out;
  CHECK(csv.starts_with("name,index,value\nfinal_norm.scale,0," + weights[0]["values"][0].dump() + "\n"));
  CHECK(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')) ==
        1 + weights[0]["values"].size());
  // If one tensor of the file cannot be read, nothing is written.
  const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"BOOL","shape":[4],"data_offsets":[4,8]}})";
  std::ofstream mixed(folder.path() / "mixed.safetensors", std::ios::binary);
  const std::uint64_t length = header.size();
  mixed.write(reinterpret_cast<const char*>(&length), sizeof length) << header << std::string(8, '\0');
  mixed.close();
  for (const char* format : {"table", "csv", "json"}) {
    const Outcome outcome =
        handgrad_in(folder.path(), std::string("inspect mixed.safetensors --format ") + format);
    CHECK(outcome.status == 1);
    CHECK(outcome.out == "");
    CHECK_MESSAGE(outcome.err.find("tensor b: numbers of type BOOL cannot be used") != std::string::npos,
                  outcome.err);
  }
  for (const char* old : {"step-000005", "step-000010", "step-000012"})
    fs::remove_all(folder.path() / "run" / "checkpoints" / old);
  CHECK(handgrad_in(folder.path(), "inspect run --of first_moment").err ==
        "inspect run: there is no first_moment yet: checkpoints hold it, and this run has none\n"
        "  try: --of value, gradient or update; train with --set train.checkpoint_every=100\n");
}
