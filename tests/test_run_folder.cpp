// The folder of a run: what is in it before, while and after a run that may fail.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/train/run_folder.h"
#include "handgrad/train/step_lines.h"
#include "program.h"
#include "temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using handgrad::train::RunFolder;
using Names = std::set<std::string>;

Names names_in(const fs::path& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// A folder with the files of an old run.
void furnish(const fs::path& run) {
  write(run / "config.json", "old");
  write(run / "checkpoints" / "step-000003" / "state.json", "old");
}

}  // namespace

TEST_CASE("run folder: an interrupted start does not count as a run") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  fs::create_directory(run);
  std::ofstream(run / "log.txt") << "step 0 of 3\n";
  std::ofstream(run / "config.json.unfinished") << "{";
  const std::string train =
      "train " HANDGRAD_SOURCE_DIR "/configs/toy.json --quiet --out run --set train.steps=3";
  CHECK(handgrad_in(folder.path(), train).status == 0);
  CHECK(fs::exists(run / "checkpoints" / "step-000003"));
  CHECK_FALSE(fs::exists(run / "config.json.unfinished"));
  CHECK(handgrad_in(folder.path(), train).status == 1);  // now it is one
}

TEST_CASE("run folder: a run that fails before its first step leaves no folder") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "runs" / "new";
  {
    const RunFolder run = RunFolder::create(path, RunFolder::Existing::reject);
    write(path / "metrics.jsonl", "");
  }
  CHECK_FALSE(fs::exists(path));
  {
    RunFolder run = RunFolder::create(path, RunFolder::Existing::reject);
    write(path / "config.json", "{}");
    run.keep();
  }
  CHECK(names_in(path) == Names{"config.json"});
}

TEST_CASE("run folder: the replaced run is restored when the new run fails, and deleted when it succeeds") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "run";
  furnish(path);
  {
    const RunFolder run = RunFolder::create(path, RunFolder::Existing::overwrite);
    CHECK(names_in(path) == Names{"replaced"});
    write(path / "config.json", "new");
    write(path / "metrics.jsonl", "");
  }
  CHECK(names_in(path) == Names{"config.json", "checkpoints"});
  CHECK(read_file(path / "config.json") == "old");
  {
    RunFolder run = RunFolder::create(path, RunFolder::Existing::overwrite);
    write(path / "config.json", "new");
    RunFolder copy = run;
    copy.keep();
  }
  CHECK(names_in(path) == Names{"config.json"});
  CHECK(read_file(path / "config.json") == "new");
}

TEST_CASE("run folder: the next call recovers from a kill") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "run";
  SUBCASE("before the first step: the old run comes back") {
    furnish(path / "replaced");
    write(path / "config.json", "new");
    RunFolder::recover(path);
    CHECK(read_file(path / "config.json") == "old");
    CHECK(names_in(path) == Names{"config.json", "checkpoints"});
  }
  SUBCASE("after a checkpoint: the new one stays") {
    furnish(path / "replaced");
    write(path / "config.json", "new");
    write(path / "checkpoints" / "step-000001" / "state.json", "new");
    RunFolder::recover(path);
    CHECK(read_file(path / "config.json") == "new");
    CHECK(names_in(path) == Names{"config.json", "checkpoints"});
  }
}

TEST_CASE("run folder: a run that has just begun is not taken for one that was killed") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "run";
  furnish(path / "replaced");
  write(path / "config.json", "new");
  RunFolder::Lock lock;  // it is under way: this process holds it
  lock.take(path);
  const Outcome resumed = handgrad_in(folder.path(), "train --resume run");
  CHECK(resumed.status == 1);
  CHECK(resumed.err.find("another process is training in 'run'") != std::string::npos);
  CHECK(read_file(path / "config.json") == "new");
  CHECK(names_in(path) == Names{"config.json", "replaced"});
}

TEST_CASE("run folder: a call that cannot train leaves the run that it was to replace or to continue") {
  const TemporaryFolder folder;
  const std::string toy =
      "train " + config_path("toy.json") +
      " --quiet --set train.steps=3 --set train.batch_size=1 --set model.vocab_size=200000"
      " --set model.emb_dim=8 --set model.n_heads=1"
      " --set data.val_fraction=0 --out run ";
  REQUIRE(handgrad_in(folder.path(), toy).status == 0);
  const std::string config = read_file(folder.path() / "run" / "config.json");
  const std::string state = read_file(folder.path() / "run" / "checkpoints" / "step-000003" / "state.json");
  // No memory for the first step's 420 GB of logits: everything was in order before.
  const std::string too_large = "--set train.batch_size=32768 --set train.steps=5 ";
  const Outcome replaced = handgrad_in(folder.path(), toy + too_large + "--overwrite");
  CHECK(replaced.status == 1);
  CHECK(replaced.err.find(" GiB more are needed, ") != std::string::npos);
  CHECK(read_file(folder.path() / "run" / "config.json") == config);
  CHECK(read_file(folder.path() / "run" / "checkpoints" / "step-000003" / "state.json") == state);
  const Outcome continued = handgrad_in(folder.path(), "train --resume run --quiet " + too_large);
  CHECK(continued.status == 1);
  CHECK(read_file(folder.path() / "run" / "config.json") == config);
}

TEST_CASE("a run keeps its tokenizer: the text may change or go, ids keep their meaning") {
  const TemporaryFolder folder;
  const fs::path text = folder.path() / "text.txt";
  fs::copy_file(HANDGRAD_SOURCE_DIR "/data/boats.txt", text);
  const std::string train =
      "train " + config_path("toy.json") + " --quiet --set data.path=text.txt --out run ";
  REQUIRE(handgrad_in(folder.path(), train + "--set train.steps=20 --set train.stop_after=10").status == 0);
  const std::string generate = "generate run --prompt 'The ' --seed 3";
  const Outcome before = handgrad_in(folder.path(), generate);
  REQUIRE(before.status == 0);

  const std::string old = read_file(text);
  write(text, "#" + old);  // one more character, before all others
  CHECK(handgrad_in(folder.path(), generate).out == before.out);
  const Outcome other = handgrad_in(folder.path(), "train --resume run");
  CHECK(other.status == 1);
  CHECK(other.err.find("every character must be one of the 33 it knows, got \"#\" (U+0023) at character 0") !=
        std::string::npos);

  write(text, old + old);
  const Outcome longer = handgrad_in(folder.path(), "train --resume run");
  CHECK(longer.status == 0);
  CHECK(longer.out.find("the data were 6033 tokens, ") != std::string::npos);
  CHECK(longer.out.find(", are 12066 tokens, ") != std::string::npos);

  fs::remove(text);
  CHECK(handgrad_in(folder.path(), generate).status == 0);
}

TEST_CASE(
    "run folder: a continued file of lines keeps the first ones, and an incomplete line does not count") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "samples.jsonl";
  const std::string one = "{\"step\": 1}\n", two = "{\"step\": 2, \"loss\": 3}\n", three = "{\"step\": 3}\n";
  write(file, one + two + three + "{\"step\": 4}\n");
  handgrad::train::continue_lines(file, 2) << three;
  CHECK(read_file(file) == one + two + three);
  for (const char* cut : {"{\"step\":", "{\"step\": 2}", "\n", "{\"loss\": 3}\n"}) {
    CAPTURE(cut);
    write(file, one + cut);
    handgrad::train::continue_lines(file, 2) << two;
    CHECK(read_file(file) == one + two);
  }
  write(file, one + three);  // addressed by step: no line of step 2
  handgrad::train::continue_lines(file, 2) << three;
  CHECK(read_file(file) == one + three);
  handgrad::train::continue_lines(file, 0) << one;
  CHECK(read_file(file) == one);
  fs::remove(file);
  handgrad::train::continue_lines(file, 5) << one;
  CHECK(read_file(file) == one);
}

TEST_CASE(
    "run folder: what is kept of a continued file is there at every moment, when the disk is full too") {
  const TemporaryFolder folder;
  const std::string toy = "train " + config_path("toy.json") +
                          " --out run --quiet --set train.steps=12 --set train.stop_after=10";
  REQUIRE(handgrad_in(folder.path(), toy).status == 0);
  const fs::path file = folder.path() / "run" / "samples.jsonl";
  const std::string texts = read_file(file);
  REQUIRE(std::count(texts.begin(), texts.end(), '\n') == 3);  // of steps 0, 1 and 10
  // No file may become larger than nothing: what cannot be written is not lost.
  const fs::path limited = folder.path() / "limited";
  write(limited, "trap '' XFSZ; ulimit -f 0; '" HANDGRAD_PROGRAM "' train --resume run --quiet; exit 0");
  const std::string command = "cd '" + folder.path().string() + "' && bash limited >/dev/null 2>/dev/null";
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(read_file(file) == texts);
}

TEST_CASE("run folder: every verb that reads a run rejects one of an older handgrad, and train replaces it") {
  const TemporaryFolder folder;
  const std::string toy = config_path("toy.json"),
                    train = "train " + toy + " --out run --quiet --set train.steps=4";
  REQUIRE(handgrad_in(folder.path(), train + " --set train.stop_after=2").status == 0);
  write(folder.path() / "run" / "inspect.bin", "");
  write(folder.path() / "run" / "texts.jsonl", "");
  for (const std::string& call :
       {std::string("inspect run"), std::string("explain run"), std::string("report run"),
        std::string("generate run --prompt T"), std::string("train --resume run"),
        "train --resume run " + toy, std::string("trace run --out a"),
        "trace " + toy + " --weights run --out a", "check " + toy + " --weights run",
        "train " + toy + " --weights run --out other"}) {
    CAPTURE(call);
    const Outcome outcome = handgrad_in(folder.path(), call);
    CHECK(outcome.status == 1);
    CHECK(outcome.out == "");
    CHECK(outcome.err ==
          "\"run\": an older handgrad wrote this run: it has inspect.bin and texts.jsonl\n"
          "  try: train again, or use that older version\n");
  }
  CHECK(handgrad_in(folder.path(), train + " --overwrite").status == 0);
  CHECK(handgrad_in(folder.path(), "inspect run").status == 0);
  CHECK_FALSE(fs::exists(folder.path() / "run" / "texts.jsonl"));
}
