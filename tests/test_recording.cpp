// Recordings of inspected parameters, and what inspect makes of them.
#include <doctest/doctest.h>

#include <fstream>
#include <limits>
#include <sstream>

#include <nlohmann/json.hpp>

#include "handgrad/train/session.h"
#include "handgrad/view/inspect.h"
#include "handgrad/view/text.h"
#include "paths.h"
#include "temporary_folder.h"

namespace {

using namespace handgrad;
using nlohmann::json;

json small_config(int every) {
  return {
      {"seed", 3},
      {"model", {{"context_length", 8}, {"emb_dim", 8}, {"n_heads", 2}, {"n_layers", 1}, {"init", "book"}}},
      {"data", {{"path", HANDGRAD_SOURCE_DIR "/data/boats.txt"}}},
      {"optimizer", {{"type", "adam"}, {"lr", 0.01}}},
      {"train", {{"steps", 6}, {"batch_size", 2}}},
      {"inspect", {{"every", every}}}};
}

/// Trains six small steps into a run folder.
void train_into(const std::filesystem::path& path, int every = 1) {
  train::Run run(train::ConfigDocument::from_json(small_config(every), path));
  train::SessionListener nobody;
  train::RunFolder folder = train::RunFolder::create(path, train::RunFolder::Existing::refuse);
  folder.write_config(run.effective());
  train::Session session(run, std::move(folder), nobody);
  CHECK(session.train() == train::Ending::finished);
}

std::string inspected(const std::filesystem::path& run, const view::InspectOptions& options) {
  std::ostringstream out;
  view::inspect(run, options, out);
  return out.str();
}

std::string refused(const std::filesystem::path& run, const view::InspectOptions& options) {
  try {
    inspected(run, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "(accepted)";
}

}  // namespace

TEST_CASE("recording: with gaps between the records, the update is that of the recorded step alone") {
  const TemporaryFolder folder;
  train_into(folder.path() / "each", 1);
  train_into(folder.path() / "third", 3);
  const train::Recording each(folder.path() / "each" / train::kRecordingFile);
  const train::Recording third(folder.path() / "third" / train::kRecordingFile);
  CHECK(each.last_step() == 6);
  CHECK(third.step_count() == 3);
  CHECK_FALSE(third.has_step(2));
  for (std::size_t i = 0; i < each.parameters().size(); ++i) {
    CHECK(each.parameters()[i].name == third.parameters()[i].name);
    for (const std::int64_t step : {0, 3, 6}) {
      const train::RecordedStep a = each.read(i, step), b = third.read(i, step);
      CHECK(a.value == b.value);
      CHECK(a.gradient == b.gradient);
      CHECK(a.gradient.empty() == (step == 0));
      REQUIRE(a.update.size() == b.update.size());
      for (std::size_t k = 0; k < a.update.size(); ++k) CHECK(static_cast<float>(a.update[k]) == b.update[k]);
    }
  }
}

TEST_CASE("recording: the last step is there, also when it is no multiple") {
  const TemporaryFolder folder;
  train_into(folder.path() / "each", 1);
  train_into(folder.path() / "fourth", 4);
  const train::Recording each(folder.path() / "each" / train::kRecordingFile);
  const train::Recording fourth(folder.path() / "fourth" / train::kRecordingFile);
  CHECK(fourth.steps(0, 9) == std::vector<std::int64_t>{0, 4, 6});
  CHECK(fourth.steps(1, 5) == std::vector<std::int64_t>{4});
  CHECK(fourth.last_step() == 6);
  CHECK_FALSE(fourth.has_step(5));
  for (const std::int64_t step : {4, 6}) {
    CHECK(fourth.read(0, step).value == each.read(0, step).value);
    CHECK(fourth.read(0, step).gradient == each.read(0, step).gradient);
  }
}

TEST_CASE("recording: going through all steps gives what reading each of them gives") {
  const TemporaryFolder folder;
  for (const int every : {1, 3, 4}) {
    CAPTURE(every);
    const std::filesystem::path run = folder.path() / std::to_string(every);
    train_into(run, every);
    const train::Recording recording(run / train::kRecordingFile);
    for (const std::vector<std::size_t>& parameters :
         {std::vector<std::size_t>{0, 1, 2, 3}, {0, 2, 3, 5}, {4}, {}}) {
      REQUIRE(recording.parameters().size() > 5);
      std::vector<std::int64_t> seen;
      recording.for_each_step(parameters, [&](const std::vector<train::RecordedStep>& steps) {
        REQUIRE(steps.size() == parameters.size());
        for (std::size_t k = 0; k < steps.size(); ++k) {
          if (k == 0) seen.push_back(steps[k].step);
          const train::RecordedStep expected = recording.read(parameters[k], steps[k].step);
          CHECK(steps[k].step == seen.back());
          CHECK(steps[k].lr == expected.lr);
          CHECK(steps[k].value == expected.value);
          CHECK(steps[k].gradient == expected.gradient);
          CHECK(steps[k].update == expected.update);
        }
      });
      if (!parameters.empty()) CHECK(seen == recording.steps(0, recording.last_step()));
    }
  }
}

TEST_CASE("recording: a record that was cut short is as if it were not there") {
  const TemporaryFolder folder;
  train_into(folder.path() / "run");
  const auto path = folder.path() / "run" / train::kRecordingFile;
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 5);
  CHECK(train::Recording(path).last_step() == 5);
  std::ofstream(path) << "not a recording";
  CHECK_THROWS_WITH_AS(train::Recording{path}, doctest::Contains("is not a recording of a training run"),
                       Error);
}

TEST_CASE("inspect: a recording that ends before its run says where") {
  const TemporaryFolder folder;
  const std::filesystem::path run = folder.path() / "run";
  train_into(run);
  const std::filesystem::path file = run / train::kRecordingFile;
  const train::Recording recording(file);
  const std::int64_t record = 16 + [&] {
    std::int64_t bytes = 0;
    for (const auto& parameter : recording.parameters()) bytes += 8 + 2 * 4 * parameter.shape.numel();
    return bytes;
  }();
  std::filesystem::resize_file(file,
                               std::filesystem::file_size(file) - static_cast<std::uintmax_t>(2 * record));
  CHECK(refused(run, {.steps = "5"}) == "inspect " + run.string() +
                                            ": no step 5; step 4 of 6 is the last one recorded\n"
                                            "  recorded  steps 0 to 4, every step\n"
                                            "  try: --step last");
}

TEST_CASE("numbers of a run that went astray keep their columns") {
  CHECK(view::fixed_text(-1.23456, 3) == "-1.235");
  CHECK(view::fixed_text(999999, 1) == "999999.0");
  CHECK(view::fixed_text(-142955760394236.0, 3) == "-1.4e+14");
  CHECK(view::fixed_text(std::numeric_limits<double>::infinity(), 3) == "inf");
}

TEST_CASE("inspect: csv has one line for each step, name and index") {
  const TemporaryFolder folder;
  train_into(folder.path() / "run");
  std::istringstream lines(inspected(
      folder.path() / "run",
      {.names = {"final_norm.scale"}, .steps = "0:1", .format = view::InspectOptions::Format::csv}));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "step,name,index,value,gradient,update");
  std::getline(lines, line);
  CHECK(line == "0,final_norm.scale,0,1,,");
  int count = 1;
  while (std::getline(lines, line)) ++count;
  CHECK(count == 16);
}

TEST_CASE("inspect: names, ends of names, patterns, and steps that are not there") {
  const TemporaryFolder folder;
  const auto run = folder.path() / "run";
  train_into(run);
  const auto names = [&](std::vector<std::string> patterns) {
    std::vector<std::string> found;
    for (const json& state : json::parse(inspected(
             run,
             {.names = std::move(patterns), .steps = "last", .format = view::InspectOptions::Format::json})))
      found.push_back(state["name"]);
    return found;
  };
  CHECK(names({"norm1.scale"}) == std::vector<std::string>{"trf_blocks.0.norm1.scale"});
  CHECK(names({"scale"}).size() == 3);
  CHECK(names({"final*"}) == std::vector<std::string>{"final_norm.scale", "final_norm.shift"});
  CHECK(names({}).size() == 6);
  CHECK(refused(run, {.names = {"ale"}}).find("nothing recorded is named 'ale'") != std::string::npos);
  CHECK(refused(run, {.steps = "7"}).find("no step 7; this run has 6 steps") != std::string::npos);
  CHECK(refused(run, {.steps = "5:2"}).find("--step must name the smaller step first, got '5:2'") !=
        std::string::npos);
  CHECK(refused(run, {.steps = "x"}).find("--step must be a step, a range or 'last', got 'x'") !=
        std::string::npos);
}

TEST_CASE("inspect: the tables keep within 100 columns and name their features") {
  const TemporaryFolder folder;
  const auto run = folder.path() / "run";
  train_into(run);
  for (const view::InspectOptions& options :
       {view::InspectOptions{.names = {"scale"}, .steps = "1:3"}, view::InspectOptions{.ascii = true},
        view::InspectOptions{.names = {"final_norm.scale"}, .ascii = true}}) {
    std::istringstream lines(inspected(run, options));
    for (std::string line; std::getline(lines, line);)
      if (line.find("next") == std::string::npos && line.find("handgrad") == std::string::npos)
        CHECK_MESSAGE(line.size() <= 100, line);
  }
  CHECK(inspected(run, {.names = {"final_norm.scale"}}).find("agreement") != std::string::npos);
}

TEST_CASE("sparkline: a line as high as its values, one mark for each share") {
  CHECK(view::sparkline({0, 1, 2, 3, 4, 5, 6, 8}, 8, 8, true) == ".:-=+*#@");
  CHECK(view::sparkline({0, 0, 8, 8}, 8, 2, true) == ".@");
  CHECK(view::sparkline({1, 1}, 0, 30, true) == "..");
  CHECK(view::agreement(-2, 4) == doctest::Approx(0.5));
  CHECK(view::agreement(0, 0) == 0);
}
