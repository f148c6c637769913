// Cases of other projects' reports that are about the whole program or its build. docs/cases.md lists all of them.
#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

#include "handgrad/core/ops.h"
#include "handgrad/core/parallel.h"
#include "handgrad/io/safetensors.h"
#include "paths.h"
#include "program.h"
#include "temporary_folder.h"

using namespace handgrad;
using nlohmann::json;

TEST_CASE(
    "H94 subnormal numbers are flushed to zero while handgrad computes, on every thread, and not beyond") {
  const Tensor x = Tensor::full({1 << 20}, 1e-40);
  {
    const FlushSubnormals flush;
    for (const double y : (x * 0.5).values()) REQUIRE(y == 0);
  }
  const Tensor one = Tensor::full({1}, 1e-40);
  CHECK((one * 0.5).item() != 0);
}

TEST_CASE("H97 the start line says how many threads are at work") {
  const TemporaryFolder folder;
  const std::string train =
      "train " + config_path("toy.json") + " --set train.steps=1 --overwrite --out run ";
  CHECK(handgrad_in(folder.path(), train + "--threads 1").out.find(", 1 thread\n") != std::string::npos);
  CHECK(handgrad_in(folder.path(), train + "--threads 2").out.find(", 2 threads\n") != std::string::npos);
}

TEST_CASE("H98 the program runs with the instructions that every processor of its kind has") {
  const TemporaryFolder folder;
  ::setenv("HANDGRAD_KERNELS", "baseline", 1);
  const Outcome version = handgrad_in(folder.path(), "--version");
  const Outcome train =
      handgrad_in(folder.path(), "train " + config_path("toy.json") + " --set train.steps=20 --out run");
  ::unsetenv("HANDGRAD_KERNELS");
  CHECK(version.out.find(", kernels baseline\n") != std::string::npos);
  CHECK(train.status == 0);
  CHECK(train.out.find("\n    20   2.2") != std::string::npos);
}

TEST_CASE("H101 a run that diverges leaves valid JSON with its NaN marked, and says where it began") {
  const TemporaryFolder folder;
  const Outcome train = handgrad_in(
      folder.path(), "train " + config_path("toy_sgd.json") + " --set optimizer.lr=1e38 --out run --quiet");
  CHECK(train.status == 1);
  CHECK(train.err.find("must be a finite number, got ") != std::string::npos);
  CHECK(train.err.find("\n  first   ") != std::string::npos);
  CHECK(
      train.err.ends_with("  Nothing was updated. The state before it is in run/checkpoints/step-000001.\n"));
  std::istringstream lines(read_file(folder.path() / "run" / "metrics.jsonl"));
  json last;
  for (std::string line; std::getline(lines, line);) {
    last = json::parse(line);  // throws if it is not JSON
    CHECK(line.find("nan") == std::string::npos);
  }
  CHECK(last["loss"].is_null());
  CHECK(last["non_finite"] == true);
  // The weights before that step are there to look at.
  CHECK(handgrad_in(folder.path(), "inspect run --step last").status == 0);
}

TEST_CASE("a NaN in one weight of block 1: the message names tensor, shape, module and step") {
  const TemporaryFolder folder;
  const std::string two_blocks =
      config_path("toy.json") + " --quiet --set model.n_layers=2 --set train.steps=1 ";
  REQUIRE(handgrad_in(folder.path(), "train " + two_blocks + "--out a").status == 0);
  auto arrays =
      io::SafetensorsReader(folder.path() / "a/checkpoints/step-000001/model.safetensors").read_all();
  for (io::NamedArray& named : arrays)
    if (named.name == "trf_blocks.1.norm2.scale") named.array.mutable_data<float>()[9] = std::nanf("");
  io::write_safetensors(folder.path() / "broken.safetensors", arrays);
  for (const char* flag : {"", " --find-nan"}) {
    const Outcome outcome = handgrad_in(
        folder.path(), "train " + two_blocks + "--overwrite --out b --weights broken.safetensors" + flag);
    CHECK(outcome.status == 1);
    CHECK(outcome.err ==
          "train: the loss of step 1 must be a finite number, got NaN\n"
          "  first   trf_blocks.1.norm2.scale [32], a parameter: 1 of 32 numbers is not finite\n"
          "  in      trf_blocks.1.norm2\n"
          "  Nothing was updated. The state before it is in b/checkpoints/step-000000.\n");
  }
}

TEST_CASE("docs/cases.md leads to the tests that carry its ids") {
  std::istringstream lines(read_file(HANDGRAD_SOURCE_DIR "/docs/cases.md"));
  std::size_t rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| H")) continue;
    ++rows;
    const std::string id = line.substr(2, line.find(' ', 2) - 2);
    for (std::size_t at = 0; (at = line.find("`tests/test_", at)) != std::string::npos;) {
      const std::size_t end = line.find('`', at + 1);
      const std::string file = line.substr(at + 1, end - at - 1);
      at = end + 1;
      if (id == "H96") continue;  // whole files are about it
      CHECK_MESSAGE(read_file(HANDGRAD_SOURCE_DIR "/" + file).find(id) != std::string::npos, id, " in ",
                    file);
    }
  }
  CHECK(rows >= 90);
}
