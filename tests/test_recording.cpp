// Recordings of inspected parameters, and what inspect shows of them.
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
  train::RunFolder folder = train::RunFolder::create(path, train::RunFolder::Existing::reject);
  folder.write_config(run.effective());
  train::Session session(run, std::move(folder));
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
  CHECK(third.steps() == std::vector<std::int64_t>{0, 3, 6});
  CHECK_FALSE(third.has_values(2));
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

TEST_CASE("recording: the last step is recorded even if it is not a multiple of the interval") {
  const TemporaryFolder folder;
  train_into(folder.path() / "each", 1);
  train_into(folder.path() / "fourth", 4);
  const train::Recording each(folder.path() / "each" / train::kRecordingFile);
  const train::Recording fourth(folder.path() / "fourth" / train::kRecordingFile);
  CHECK(fourth.steps(0, 9) == std::vector<std::int64_t>{0, 4, 6});
  CHECK(fourth.steps(1, 5) == std::vector<std::int64_t>{4});
  CHECK(fourth.last_step() == 6);
  CHECK_FALSE(fourth.has_values(5));
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

TEST_CASE("recording: values of the last step that were cut short leave its statistics") {
  const TemporaryFolder folder;
  train_into(folder.path() / "run", 4);
  const auto path = folder.path() / "run" / train::kRecordingFile;
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 5);
  const train::Recording recording(path);
  CHECK(recording.last_step() == 6);
  CHECK(recording.steps() == std::vector<std::int64_t>{0, 4});
  CHECK(recording.statistics(0, 6).update_norm > 0);
}

TEST_CASE("recording: for any gap, the end is found where the file was cut") {
  const TemporaryFolder folder;
  for (const int every : {1, 2, 3, 4, 5, 7, 100}) {
    CAPTURE(every);
    const auto run = folder.path() / std::to_string(every);
    train_into(run, every);
    const auto path = run / train::kRecordingFile;
    CHECK(train::Recording(path).last_step() == 6);
    CHECK(train::Recording(path).has_values(6));
    for (std::int64_t step = 6; step >= 0; --step) {
      const std::int64_t end = train::Recording(path).place_of(step);
      std::filesystem::resize_file(path, static_cast<std::uintmax_t>(end + (step % 2 == 0 ? 0 : 9)));
      CHECK(train::Recording(path).last_step() == step - 1);
    }
  }
}

TEST_CASE("recording: a changed byte is reported with the file and its step, and only when it is read") {
  const TemporaryFolder folder;
  train_into(folder.path() / "run", 2);
  const auto path = folder.path() / "run" / train::kRecordingFile;
  const train::Recording intact(path);
  const std::int64_t head = intact.layout().head_bytes();
  const std::string expected = "inspect: '" + path.string() +
                               "': the record of step 4 is damaged: it is not what the run wrote there\n"
                               "  try: a copy of the file, or train again; other steps can be read";
  const auto damage = [&](std::int64_t place) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(place);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(place);
    file.put(byte);
  };
  for (std::int64_t offset = 0; offset < head; offset += 5) {
    CAPTURE(offset);
    damage(intact.place_of(4) + offset);
    CHECK_THROWS_WITH_AS(train::Recording(path).statistics(0, 4), expected.c_str(), Error);
    damage(intact.place_of(4) + offset);
  }
  damage(intact.place_of(4) + head);  // a value of the first parameter
  const train::Recording damaged(path);
  CHECK_THROWS_WITH_AS(damaged.read(0, 4), expected.c_str(), Error);
  CHECK(damaged.read(1, 4).value == train::Recording(path).read(1, 4).value);
  CHECK(damaged.statistics(0, 4).gradient_norm > 0);
  CHECK(damaged.read(0, 6).step == 6);
  CHECK(refused(folder.path() / "run", {.names = {"norm1.scale"}, .steps = "4", .values = true}) == expected);
}

TEST_CASE("inspect: a recording that ends before its run says where") {
  const TemporaryFolder folder;
  const std::filesystem::path run = folder.path() / "run";
  train_into(run);
  const std::filesystem::path file = run / train::kRecordingFile;
  const train::Recording recording(file);
  std::filesystem::resize_file(file, static_cast<std::uintmax_t>(recording.place_of(5)));
  CHECK(refused(run, {.steps = "5"}) == "inspect " + run.string() +
                                            ": no step 5; step 4 of 6 is the last one recorded\n"
                                            "  recorded  steps 0 to 4, every step\n"
                                            "  try: `step` last");
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
  CHECK(refused(run, {.steps = "5:2"}).find("`step` must name the smaller step first, got '5:2'") !=
        std::string::npos);
  CHECK(refused(run, {.steps = "x"}).find("`step` must be a step, a range or 'last', got 'x'") !=
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
