// The report: the data of a page. How the page shows it is tested in a browser, tests/browser.
#include <doctest/doctest.h>

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>

#include "handgrad/core/error.h"
#include "handgrad/train/recording.h"
#include "handgrad/train/samples.h"
#include "handgrad/view/report.h"
#include "handgrad/view/text.h"
#include "program.h"
#include "temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using handgrad::DType;
using handgrad::view::base64;
using nlohmann::json;

/// What the page of `file` holds as its data.
json data_of(const fs::path& file) {
  const std::string page = read_file(file), open = "id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

/// The numbers of a base64 text.
std::vector<double> numbers_of(const json& text, std::size_t bytes) {
  static const std::string kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string raw;
  unsigned bits = 0;
  int have = 0;
  for (const char c : text.get<std::string>()) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(kDigits.find(c));
    have += 6;
    if (have < 8) continue;
    have -= 8;
    raw += static_cast<char>(bits >> have & 255);
  }
  std::vector<double> numbers;
  for (std::size_t at = 0; at + bytes <= raw.size(); at += bytes) {
    float narrow = 0;
    double wide = 0;
    std::memcpy(bytes == 4 ? static_cast<void*>(&narrow) : &wide, raw.data() + at, bytes);
    numbers.push_back(bytes == 4 ? static_cast<double>(narrow) : wide);
  }
  return numbers;
}

}  // namespace

TEST_CASE("base64 of 0 to 3 bytes, and of numbers") {
  CHECK(base64("", 0) == "");
  CHECK(base64("M", 1) == "TQ==");
  CHECK(base64("Ma", 2) == "TWE=");
  CHECK(base64("Man", 3) == "TWFu");
  CHECK(base64({1, -2.5}, DType::float32) == "AACAPwAAIMA=");
  CHECK(base64({1}, DType::float64) == "AAAAAAAA8D8=");
}

TEST_CASE("a page has a column for every record, or for every n-th and the last") {
  const auto columns = [](std::int64_t records, std::int64_t every, std::int64_t most) {
    std::vector<std::int64_t> steps;
    for (std::int64_t i = 0; i < records; ++i) steps.push_back(i * every);
    return handgrad::view::column_steps(steps, most);
  };
  CHECK(columns(0, 1, 301).empty());
  CHECK(columns(1, 5, 301) == std::vector<std::int64_t>{0});
  CHECK(columns(4, 5, 301) == std::vector<std::int64_t>{0, 5, 10, 15});
  CHECK(columns(301, 1, 301).size() == 301);
  CHECK(columns(11, 1, 4) == std::vector<std::int64_t>{0, 4, 8, 10});
  for (const std::int64_t records : {302, 600, 601, 602, 1000, 99999}) {
    const auto steps = columns(records, 10, 301);
    CHECK(steps.size() <= 301);
    CHECK(steps.size() > 150);
    CHECK(steps.back() == (records - 1) * 10);
    CHECK(std::is_sorted(steps.begin(), steps.end()));
  }
}

TEST_CASE("samples are written at ever rarer steps") {
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 0; step <= 20000; ++step)
    if (handgrad::train::is_sample_step(step)) steps.push_back(step);
  CHECK(steps == std::vector<std::int64_t>{0, 1, 10, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000});
}

TEST_CASE("training leaves a page whose values, gradients and updates are those of inspect, bit by bit") {
  const TemporaryFolder folder;
  for (const char* dtype : {"float32", "float64"}) {
    for (const char* every : {"1", "5"}) {  // 5: the last step, 12, is between two that are due
      CAPTURE(dtype);
      CAPTURE(every);
      REQUIRE(handgrad_in(folder.path(), "train " + config_path("toy.json") +
                                             " --out run --overwrite --quiet --set train.steps=12 --dtype " +
                                             dtype + " --set inspect.every=" + every)
                  .status == 0);
      const json run = data_of(folder.path() / "run" / "report.html")["runs"][0];
      CHECK(run["state"] == "finished");
      const std::size_t bytes = run["norms"]["bytes"];
      CHECK(bytes == (dtype == std::string("float32") ? 4 : 8));
      CHECK(run["row"]["bytes"] == bytes);
      for (const json& parameter : run["norms"]["parameters"]) {
        const std::string name = parameter["name"];
        const auto values = numbers_of(parameter["values"], bytes),
                   gradients = numbers_of(parameter["gradients"], bytes);
        const auto updates =
            parameter.contains("updates") ? numbers_of(parameter["updates"], bytes) : std::vector<double>();
        json states = json::array();  // those of which there are more than statistics
        for (const json& state :
             handgrad_in(folder.path(), "inspect run " + name + " --step 0:12 --values --json").json())
          if (state.contains("values")) states.push_back(state);
        REQUIRE(states.size() == run["norms"]["columns"].size());
        const std::size_t count = parameter["features"].size();
        REQUIRE(count == 32);
        for (std::size_t c = 0; c < states.size(); ++c) {
          CHECK(states[c]["step"] == run["norms"]["columns"][c]);
          for (std::size_t f = 0; f < count; ++f) {
            const std::size_t i = parameter["features"][f];
            const auto is = [&](double shown, const json& inspected) {
              return bytes == 4 ? static_cast<float>(shown) == inspected.get<float>()
                                : shown == inspected.get<double>();
            };
            CHECK(is(values[c * count + f], states[c]["values"][i]));
            if (c == 0) continue;
            CHECK(is(gradients[c * count + f], states[c]["gradient"][i]));
            const double update = updates.empty() ? values[c * count + f] - values[(c - 1) * count + f]
                                                  : updates[c * count + f];
            CHECK(update == states[c]["update"][i].get<double>());
          }
        }
      }
    }
  }
}

TEST_CASE("the page of a long run leaves steps out, and no bit of the updates of those that it shows") {
  const TemporaryFolder folder;
  const Outcome train = handgrad_in(
      folder.path(), "train " + config_path("toy.json") +
                         " --out run --quiet --dtype float64 --set train.steps=400 --set train.batch_size=1" +
                         " --set train.eval_every=0 --set data.val_fraction=0 --set model.n_heads=1" +
                         " --set model.emb_dim=8");
  REQUIRE_MESSAGE(train.status == 0, train.err);
  const handgrad::train::Recording recording(folder.path() / "run" / "recording.bin");
  const json norms = data_of(folder.path() / "run" / "report.html")["runs"][0]["norms"];
  REQUIRE(norms["columns"].size() == 201);
  std::size_t at = 0;
  for (const json& parameter : norms["parameters"]) {
    const std::string name = parameter["name"];
    while (recording.parameters()[at].name != name) ++at;
    const auto values = numbers_of(parameter["values"], 8), before = numbers_of(parameter["before"], 8);
    std::size_t wrong = 0, next = 0;
    for (const std::int64_t step : norms["columns"]) {
      const auto record = recording.read(at, step);
      for (const std::size_t i : parameter["features"]) {
        const double update = values[next] - before[next];
        wrong += values[next] != record.value[i] || (step > 0 && update != record.update[i]) ? 1 : 0;
        wrong += step > 0 && before[next] != recording.read(at, step - 1).value[i] ? 1 : 0;
        ++next;
      }
    }
    CHECK(wrong == 0);
    CHECK(next == values.size());
  }
}

TEST_CASE("equal runs leave equal pages, with any number of threads, and report writes the same again") {
  const TemporaryFolder folder;
  std::string first;
  for (const char* threads : {"1", "2"}) {
    const std::string train = "train " + config_path("toy.json") +
                              " --out run --overwrite --quiet --set train.steps=20 --threads " + threads;
    REQUIRE(handgrad_in(folder.path(), train).status == 0);
    const std::string page = read_file(folder.path() / "run" / "report.html");
    if (first.empty()) first = page;
    CHECK(page == first);
  }
  const Outcome report = handgrad_in(folder.path(), "report run");
  CHECK(report.status == 0);
  CHECK(report.out == "run/report.html\n");
  CHECK(read_file(folder.path() / "run" / "report.html") == first);
}

TEST_CASE("a page knows where each key of the config came from, after a resume too") {
  const TemporaryFolder folder;
  const std::string train =
      "train " + config_path("toy.json") + " --out run --quiet --set train.steps=4 --set train.stop_after=2";
  REQUIRE(handgrad_in(folder.path(), train).status == 0);
  REQUIRE(handgrad_in(folder.path(), "train --resume run --quiet").status == 0);
  const std::string timing = read_file(folder.path() / "run" / "timing.jsonl");
  CHECK(timing.find("\"resumed\"") == timing.rfind("\"resumed\""));  // once, whatever the clock says
  CHECK(timing.find("\"resumed\": true}\n{\"step\": 4,") != std::string::npos);
  const json run = data_of(folder.path() / "run" / "report.html")["runs"][0];
  std::map<std::string, std::string> from;
  for (const json& key : run["config"]) from[key[0]] = key[2];
  CHECK(from["train.steps"] == "command line");
  CHECK(from["model.emb_dim"] == "file");
  CHECK(from["data.sampling"] == "default");
  CHECK(run["metrics"]["resumed"] == json{2});
  CHECK(run["metrics"]["steps"] == json{1, 2, 3, 4});
}

TEST_CASE("a run of GPT-2's norms makes a page below 3 MB that says what it leaves out") {
  const TemporaryFolder folder;
  const fs::path wide = folder.path() / "wide";
  fs::create_directory(wide);
  fs::copy_file(HANDGRAD_SOURCE_DIR "/configs/toy.json", wide / "config.json");
  handgrad::train::RecordingLayout layout;
  layout.every = 10;
  for (int norm = 0; norm < 25; ++norm)
    for (const char* kind : {"scale", "shift"})
      layout.parameters.push_back({"norm" + std::to_string(norm) + "." + kind, handgrad::Shape({768})});
  std::ofstream file(wide / "recording.bin", std::ios::binary);
  file << layout.file_start();
  std::vector<float> values(3 * 768);
  for (std::int64_t step = 0; step <= 1000; ++step) {
    for (std::size_t i = 0; i < values.size(); ++i)  // value, gradient, update
      values[i] = 1 + 1e-5F * static_cast<float>(step * (static_cast<std::int64_t>(i % 768) - 300)) /
                          static_cast<float>(i / 768 + 1);
    const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    const bool due = step % 10 == 0;
    handgrad::train::RecordEntry entry;
    entry.statistics.gradient_norm = step > 0 ? 1 : -1;
    entry.checksum = due ? handgrad::train::checksum_of(bytes.data(), bytes.size()) : 0;
    std::string head(static_cast<std::size_t>(layout.head_bytes()), '\0');
    handgrad::train::RecordHead start{0, step, 1e-3, due};
    std::memcpy(head.data(), &start, sizeof start);
    for (std::size_t i = 0; i < 50; ++i)
      std::memcpy(head.data() + layout.entry_place(i), &entry, sizeof entry);
    start.checksum = layout.head_checksum(head.data());
    std::memcpy(head.data(), &start, sizeof start);
    file << head;
    for (int i = 0; due && i < 50; ++i) file << bytes;
  }
  file.close();
  REQUIRE(handgrad_in(folder.path(), "report wide").status == 0);
  CHECK(fs::file_size(wide / "report.html") < 3'000'000);
  const json run = data_of(wide / "report.html")["runs"][0], norms = run["norms"];
  CHECK(run["row"].is_null());
  CHECK(run["why_no_run"].get<std::string>().find("checkpoint") != std::string::npos);
  CHECK(norms["parameters"].size() == 50);
  CHECK(norms["columns"].size() == 101);
  for (const json& parameter : norms["parameters"]) {
    CHECK(parameter["size"] == 768);
    CHECK(parameter["features"].size() >= 24);
    CHECK(parameter["features"][0] == 767);  // the farthest, and the one that stayed
    CHECK(parameter["features"].back() == 300);
  }
}

TEST_CASE("a report goes into a file, whole or not at all, and knows its run without a slash") {
  const TemporaryFolder folder;
  REQUIRE(handgrad_in(folder.path(),
                      "train " HANDGRAD_SOURCE_DIR "/configs/toy.json --quiet --out run --set train.steps=3")
              .status == 0);
  REQUIRE(handgrad_in(folder.path(), "report run/").status == 0);
  CHECK(data_of(folder.path() / "run" / "report.html")["runs"][0]["path"] == "run");
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  CHECK(handgrad_in(folder.path(), "report run --out nowhere/page.html").err ==
        "\"nowhere/page.html\": cannot be written: No such file or directory\n");
  for (const char* out : {"pipe", "run"}) {
    const Outcome outcome = handgrad_in(folder.path(), std::string("report run --out ") + out);
    CHECK(outcome.status == 1);
    CHECK(outcome.err ==
          "report: --out '" + std::string(out) + "' is not a file\n  try: the name of a file\n");
  }
}

TEST_CASE("gathering data ends when no page needs it any more") {
  const TemporaryFolder folder;
  const std::filesystem::path run = folder.path() / "run";
  REQUIRE(handgrad_in(folder.path(),
                      "train " HANDGRAD_SOURCE_DIR "/configs/toy.json --quiet --out run --set train.steps=3")
              .status == 0);
  std::atomic<bool> stop{false};
  CHECK(handgrad::view::report_data(run, {.stop = &stop})["step"] == 3);
  stop = true;
  CHECK_THROWS_AS(handgrad::view::report_norms(run, 1000, &stop), handgrad::Error);
  CHECK_THROWS_AS(handgrad::view::report_metrics(run, {}, &stop), handgrad::Error);
  CHECK_THROWS_WITH_AS(handgrad::view::report_data(run, {.stop = &stop}), doctest::Contains("stopped before"),
                       handgrad::Error);
}

TEST_CASE("whatever a text holds stays data in the page") {
  const TemporaryFolder folder;
  const std::string name = "\"</script><!--&'";
  fs::create_directories(folder.path() / "\"<" / "script><!--&'");
  const Outcome train = handgrad_in(
      folder.path(), "train " + config_path("toy.json") +
                         " --quiet --set train.steps=1 --overwrite --out '\"</script><!--&'\\'''");
  REQUIRE_MESSAGE(train.status == 0, train.err);
  const fs::path file = folder.path() / name / "report.html";
  const std::string page = read_file(file);
  CHECK(data_of(file)["runs"][0]["path"] == name);
  std::size_t scripts = 0;
  for (std::size_t at = page.find("</script>"); at != std::string::npos; at = page.find("</script>", at + 1))
    ++scripts;
  CHECK(scripts == 2);  // the data's end and the script's
}
