// Evaluation, batches that are written down, and random tokens.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "handgrad/data/dataset.h"
#include "handgrad/data/fixed_batch.h"
#include "handgrad/data/windows.h"
#include "temporary_folder.h"
#include "test_data.h"

using namespace handgrad::data;
using namespace handgrad::data::testing;
TEST_CASE("evaluation: every target occurs exactly once, in order, for all sizes") {
  for (std::int32_t n = 2; n <= 40; ++n)
    for (std::int64_t cols = 1; cols < n && cols <= 7; ++cols)
      for (std::int64_t rows = 1; rows <= 5; ++rows) {
        const EvaluationWindows windows(count_to(n), rows, cols);
        Ids inputs, targets;
        for (std::int64_t index = 0; index < windows.batches(); ++index) {
          Batch batch;
          windows.fill(batch, index);
          REQUIRE(batch.rows >= 1);
          REQUIRE(batch.rows <= rows);
          REQUIRE(batch.cols <= cols);
          inputs.insert(inputs.end(), batch.inputs.begin(), batch.inputs.end());
          targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
        }
        const TokenStream all = count_to(n);
        REQUIRE(inputs == Ids(all.ids().begin(), all.ids().end() - 1));
        REQUIRE(targets == Ids(all.ids().begin() + 1, all.ids().end()));
        REQUIRE(windows.tokens() == n - 1);
      }
}

TEST_CASE("evaluation: sizes of the batches, and only the first so many") {
  const auto sizes = [](const EvaluationWindows& windows) {
    std::vector<std::pair<std::int64_t, std::int64_t>> result;
    Batch batch;
    for (std::int64_t index = 0; index < windows.batches(); ++index) {
      windows.fill(batch, index);
      result.emplace_back(batch.rows, batch.cols);
      CHECK(static_cast<std::int64_t>(batch.targets.size()) == batch.tokens());
    }
    return result;
  };
  using Sizes = std::vector<std::pair<std::int64_t, std::int64_t>>;
  CHECK(sizes(EvaluationWindows(count_to(11), 2, 3)) == Sizes{{2, 3}, {1, 3}, {1, 1}});
  CHECK(sizes(EvaluationWindows(count_to(13), 2, 3)) == Sizes{{2, 3}, {2, 3}});
  CHECK(sizes(EvaluationWindows(count_to(604), 16, 16)) == Sizes{{16, 16}, {16, 16}, {5, 16}, {1, 11}});
  const EvaluationWindows two(count_to(11), 2, 3, 2);
  CHECK(sizes(two) == Sizes{{2, 3}, {1, 3}});
  CHECK(two.tokens() == 9);
  CHECK(EvaluationWindows(count_to(604), 16, 16, 2).tokens() == 512);
  CHECK(EvaluationWindows(count_to(604), 16, 16, 8).tokens() == 603);
  const auto rejected = [](std::int64_t rows, std::int64_t cols, std::int64_t batches) {
    return message_of([&] { EvaluationWindows(count_to(11), rows, cols, batches); })
        .starts_with(
            "text: evaluation needs at least one row and column, and no negative number of batches\n");
  };
  CHECK(rejected(0, 3, 0));
  CHECK(rejected(2, 0, 0));
  CHECK(rejected(2, 3, -1));
}

TEST_CASE("fixed batch: the tables are read and returned at every position") {
  const auto json =
      nlohmann::json::parse(R"({"inputs": [[0, 1, 2], [3, 4, 5]], "targets": [[1, 2, 3], [4, 5, 6]]})");
  FixedBatch dataset(parse_batch(json, "a.json", 7));
  CHECK(dataset.plan().rows == 2);
  CHECK(dataset.plan().cols == 3);
  CHECK(dataset.batches_per_epoch() == 1);
  Batch batch;
  for (const std::int64_t step : {0, 5}) {
    dataset.fill(batch, {step, 1});
    CHECK(batch.rows == 2);
    CHECK(batch.cols == 3);
    CHECK(batch.inputs == Ids{0, 1, 2, 3, 4, 5});
    CHECK(batch.targets == Ids{1, 2, 3, 4, 5, 6});
  }
  const nlohmann::json made_in_code = {{"inputs", {{1, 2}}}, {"targets", {{2, 3}}}};  // signed numbers
  CHECK(parse_batch(made_in_code, "a.json", 4).targets == Ids{2, 3});
  CHECK(parse_batch(nlohmann::json::parse(R"({"inputs": [[2147483647]], "targets": [[0]], "type": "batch"})"),
                    "a.json", 0)
            .inputs == Ids{2147483647});
}

TEST_CASE("fixed batch: every mistake is rejected with its place") {
  const auto error_of = [](const char* text, const char* pointer = "") {
    return message_of([&] { parse_batch(nlohmann::json::parse(text), "a.json", 10, pointer); });
  };
  CHECK(error_of("[]", "/data") ==
        "a.json: /data: must be an object with the keys \"inputs\" and \"targets\"");
  CHECK(error_of(R"({"inputs": [[1]]})", "/data") ==
        "a.json: /data/targets: missing\n  try: {\"inputs\": [[1, 2]], \"targets\": [[2, 3]]}, rows of token "
        "ids");
  CHECK(error_of(R"({"inputs": 3, "targets": [[1]]})") ==
        "a.json: /inputs: must be a list of rows of token ids, got 3");
  CHECK(error_of(R"({"inputs": [], "targets": [[1]]})") ==
        "a.json: /inputs: must be a list of rows of token ids, got []");
  CHECK(error_of(R"({"inputs": [1, 2], "targets": [[1]]})") ==
        "a.json: /inputs/0: must be a row of token ids, got 1");
  CHECK(error_of(R"({"inputs": [[]], "targets": [[1]]})") ==
        "a.json: /inputs/0: must be a row of token ids, got []");
  CHECK(error_of(R"({"inputs": [[1, 2], [3]], "targets": [[1]]})") ==
        "a.json: /inputs/1: must have 2 ids, as row 0 has, got 1");
  const std::string id = ": must be a token id from 0 to 9, got ";
  CHECK(error_of(R"({"inputs": [[1, 10]], "targets": [[1, 2]]})") == "a.json: /inputs/0/1" + id + "10");
  CHECK(error_of(R"({"inputs": [[1, 2]], "targets": [[1, -1]]})", "/data") ==
        "a.json: /data/targets/0/1" + id + "-1");
  CHECK(error_of(R"({"inputs": [[1.0]], "targets": [[1]]})") == "a.json: /inputs/0/0" + id + "1.0");
  CHECK(error_of(R"({"inputs": [["1"]], "targets": [[1]]})") == "a.json: /inputs/0/0" + id + "\"1\"");
  CHECK(error_of(R"({"inputs": [[[1]]], "targets": [[1]]})") == "a.json: /inputs/0/0" + id + "an array");
  CHECK(error_of(R"({"inputs": [[18446744073709551615]], "targets": [[1]]})") ==
        "a.json: /inputs/0/0" + id + "18446744073709551615");
  CHECK(error_of(R"({"inputs": [[1, 2]], "targets": [[1, 2], [3, 4]]})", "/data") ==
        "a.json: every input must have a target\n  /data/inputs [1, 2]   /data/targets [2, 2]");
  CHECK(message_of([] {
          parse_batch(nlohmann::json::parse(R"({"inputs": [[2147483648]], "targets": [[0]]})"), "a.json", 0);
        }) == "a.json: /inputs/0/0: must be a token id from 0 to 2147483647, got 2147483648");
}

TEST_CASE("fixed batch: a batch file holds the two tables and nothing else") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "batch.json";
  const auto write = [&](const char* text) { std::ofstream(path) << text; };
  write("// one row\n{\"inputs\": [[1, 2]], \"targets\": [[2, 3]]}\n");
  CHECK(read_batch(path, 4).targets == Ids{2, 3});
  const std::string name = "\"" + path.string() + "\": ";
  write(R"({"inputs": [[1, 2]], "targets": [[2, 4]]})");
  CHECK(message_of([&] { read_batch(path, 4); }) ==
        name + "/targets/0/1: must be a token id from 0 to 3, got 4");
  write(R"({"inputs": [[1, 2]], "targets": [[2, 3]], "target": [[0]]})");
  CHECK(message_of([&] { read_batch(path, 4); }) == name + "/target: unknown key (known: inputs, targets)");
  std::filesystem::remove(path);
  CHECK(message_of([&] { read_batch(path, 4); }) == name + "cannot be opened: No such file or directory");
}

TEST_CASE("random tokens: all ids occur equally often, and targets are the row shifted by one") {
  RandomTokens tokens(10, plan_of(100, 50), kRandom);
  Batch batch, again;
  tokens.fill(batch, {3, 1});
  std::vector<int> seen(10);
  for (const std::int32_t id : batch.inputs) ++seen.at(static_cast<std::size_t>(id));
  for (const int count : seen) CHECK(std::abs(count - 500) < 110);  // 5 standard deviations
  for (std::size_t row = 0; row < 100; ++row)
    for (std::size_t col = 0; col + 1 < 50; ++col)
      REQUIRE(batch.targets[row * 50 + col] == batch.inputs[row * 50 + col + 1]);
  int last_targets = 0;  // a row's last target is not the first token of the next row
  for (std::size_t row = 0; row + 1 < 100; ++row)
    if (batch.targets[row * 50 + 49] == batch.inputs[(row + 1) * 50]) ++last_targets;
  CHECK(last_targets < 40);
  tokens.fill(again, {3, 1});
  CHECK(again.inputs == batch.inputs);
  tokens.fill(again, {4, 1});
  CHECK(again.inputs != batch.inputs);
  CHECK(message_of([] { RandomTokens(0, plan_of(1, 1), kRandom); }) ==
        "random tokens: vocab_size must be from 1 to 2147483647, got 0");
}
