// Windows over a text, evaluation, explicit batches and random tokens.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "handgrad/data/error.h"
#include "handgrad/data/evaluation.h"
#include "handgrad/data/fixed_batch.h"
#include "handgrad/data/random_tokens.h"
#include "handgrad/data/token_stream.h"
#include "handgrad/data/windows.h"

using namespace handgrad::data;
using Ids = std::vector<std::int32_t>;

namespace {

// A text whose token at place i is i, so that a row tells where it was cut out.
TokenStream count_to(std::int32_t n) {
  Ids ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return {ids, "text"};
}

// SplitMix64 over the parts of the address: equally spread and unlike the generator of the engine.
std::uint64_t mix(std::uint64_t seed, std::uint64_t step, std::uint64_t micro_batch, std::uint64_t row) {
  std::uint64_t state = seed;
  for (const std::uint64_t part : {step, micro_batch, row}) {
    state += part + 0x9E3779B97F4A7C15u;
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
    state = (state ^ (state >> 27)) * 0x94D049BB133111EBu;
    state ^= state >> 31;
  }
  return state;
}

constexpr RandomSource kRandom{mix, 2266};

BatchPlan plan_of(std::int64_t rows, std::int64_t cols) {
  BatchPlan plan;
  plan.rows = rows;
  plan.cols = cols;
  return plan;
}

// The first input of every row.
Ids starts_of(Dataset& dataset, const Position& position) {
  Batch batch;
  dataset.fill(batch, position);
  Ids starts;
  for (std::int64_t row = 0; row < batch.rows; ++row)
    starts.push_back(batch.inputs[static_cast<std::size_t>(row * batch.cols)]);
  return starts;
}

template <typename Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

SequentialWindows in_order(std::int32_t n, const BatchPlan& plan, std::int64_t stride = 0) {
  return SequentialWindows(count_to(n), plan, {stride, false, {}});
}

}  // namespace

TEST_CASE("split: the training part is floor(n * (1 - val_fraction))") {
  const auto sizes = [](std::int32_t n, double fraction) {
    const Split parts = split(count_to(n), fraction, 1);
    CHECK(parts.training.data()[0] == 0);
    CHECK(parts.training.size() + parts.validation.size() == n);
    if (parts.validation.size() > 0) CHECK(parts.validation.data()[0] == parts.training.size());
    return parts.training.size();
  };
  CHECK(sizes(6033, 0.1) == 5429);
  CHECK(sizes(1'115'394, 0.1) == 1'003'854);
  CHECK(sizes(100, 0) == 100);
  // Fractions of which n is a multiple: plain floor((1 - f) * n) in doubles would be one short for 0.9 and
  // 0.8.
  for (int tenths = 1; tenths < 10; ++tenths) CHECK(sizes(100, tenths / 10.0) == 100 - 10 * tenths);
  for (int percent = 2; percent <= 98; ++percent) CHECK(sizes(100, percent / 100.0) == 100 - percent);
}

TEST_CASE("split: a part that cannot hold a row is refused with all numbers") {
  const std::string rest =
      "3 tokens, need at least 5\n  context_length 4, and one more token, the last target\n"
      "  try: a smaller context_length or a longer text";
  CHECK(message_of([] { split(count_to(30), 0.1, 4); }) ==
        "text, validation part at val_fraction 0.1 of 30 tokens: " + rest);
  CHECK(message_of([] { split(count_to(30), 0.9, 4); }) ==
        "text, training part at val_fraction 0.9 of 30 tokens: " + rest);
  CHECK(split(count_to(30), 0, 4).training.name() == "text");
  CHECK(message_of([] { split(count_to(50), 0.1, 4); }) == "no error");
  CHECK(message_of([] { split(count_to(5), 0, 4); }) == "no error");
  for (const double fraction : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK(message_of([&] {
            split(count_to(50), fraction, 4);
          }).starts_with("text: val_fraction must be at least 0 and below 1, got "));
}

TEST_CASE("windows: H56 of 10 tokens with context 4 the starts 0 to 5 are allowed, all equally likely") {
  RandomWindows windows(count_to(10), plan_of(6000, 4), kRandom);
  CHECK(windows.starts() == 6);
  Batch batch;
  windows.fill(batch, {0, 0});
  std::map<std::int32_t, int> seen;
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    const std::int32_t start = batch.inputs[static_cast<std::size_t>(row * 4)];
    ++seen[start];
    for (std::int32_t i = 0; i < 4; ++i) {
      REQUIRE(batch.inputs[static_cast<std::size_t>(row * 4 + i)] == start + i);
      REQUIRE(batch.targets[static_cast<std::size_t>(row * 4 + i)] == start + i + 1);
    }
  }
  CHECK(seen.size() == 6);
  CHECK(seen.begin()->first == 0);
  CHECK(seen.rbegin()->first == 5);                                             // its targets are 6 to 9
  for (const auto& [start, count] : seen) CHECK(std::abs(count - 1000) < 150);  // 5 standard deviations
}

TEST_CASE("windows: H57 4 tokens with context 4 are one too few, 5 are one row") {
  const std::string message =
      "text: 4 tokens, need at least 5\n  context_length 4, and one more token, the last target\n"
      "  try: a smaller context_length or a longer text";
  CHECK(message_of([] { RandomWindows(count_to(4), plan_of(1, 4), kRandom); }) == message);
  CHECK(message_of([] { in_order(4, plan_of(1, 4)); }) == message);
  CHECK(message_of([] { EvaluationWindows(count_to(4), 1, 4); }) == message);
  CHECK(message_of([] { split(count_to(4), 0, 4); }) == message);
  CHECK(message_of([] { RandomWindows(count_to(0), plan_of(1, 4), kRandom); }).starts_with("text: 0 tokens"));

  RandomWindows one(count_to(5), plan_of(1, 4), kRandom);
  Batch batch;
  one.fill(batch, {0, 0});
  CHECK(batch.inputs == Ids{0, 1, 2, 3});
  CHECK(batch.targets == Ids{1, 2, 3, 4});
}

TEST_CASE("windows: H58 sequential windows of length 4 with stride 4 and 5") {
  Batch batch;
  SequentialWindows side_by_side = in_order(10, plan_of(2, 4), 4);
  side_by_side.fill(batch, {0, 0});
  CHECK(batch.inputs == Ids{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(batch.targets == Ids{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(side_by_side.windows() == 2);

  SequentialWindows apart = in_order(10, plan_of(2, 4), 5);
  apart.fill(batch, {0, 0});
  CHECK(batch.inputs == Ids{0, 1, 2, 3, 5, 6, 7, 8});
  CHECK(batch.targets == Ids{1, 2, 3, 4, 6, 7, 8, 9});

  CHECK(in_order(10, plan_of(2, 4)).windows() == 2);  // the default stride is the context length
  CHECK(in_order(10, plan_of(2, 4), 1).windows() == 6);
  CHECK(in_order(9, plan_of(2, 4), 4).windows() == 2);
  CHECK(in_order(8, plan_of(1, 4), 4).windows() == 1);
  CHECK(message_of([] { in_order(10, plan_of(1, 4), -1); }) == "text: stride must be at least 1, got -1");
}

TEST_CASE("windows: H59 a batch that would not be full is left out, and the text begins again") {
  SequentialWindows windows = in_order(11, plan_of(2, 2));
  CHECK(windows.windows() == 5);
  CHECK(windows.batches_per_epoch() == 2);
  CHECK(windows.dropped_rows_per_epoch() == 1);
  CHECK(starts_of(windows, {0, 0}) == Ids{0, 2});
  CHECK(starts_of(windows, {1, 0}) == Ids{4, 6});
  CHECK(starts_of(windows, {2, 0}) == Ids{0, 2});
  CHECK(starts_of(windows, {3, 0}) == Ids{4, 6});
  CHECK(message_of([] { in_order(11, plan_of(6, 2)); }) ==
        "text: one batch needs 6 windows, the text has 5\n  tokens 11   context_length 2   stride 2\n"
        "  try: a smaller batch_size or stride, or random sampling");
}

TEST_CASE("windows: micro-batches of a step follow each other") {
  BatchPlan plan = plan_of(1, 2);
  plan.micro_batches = 2;
  SequentialWindows windows = in_order(7, plan);  // starts 0, 2, 4
  CHECK(starts_of(windows, {0, 0}) == Ids{0});
  CHECK(starts_of(windows, {0, 1}) == Ids{2});
  CHECK(starts_of(windows, {1, 0}) == Ids{4});
  CHECK(starts_of(windows, {1, 1}) == Ids{0});
  CHECK(windows.steps_for_epochs(1) == 2);
  CHECK(windows.steps_for_epochs(2) == 3);
}

TEST_CASE("windows: a random batch depends on seed, step, micro-batch and row, not on what was read before") {
  RandomWindows windows(count_to(1'000'000), plan_of(8, 16), kRandom);
  RandomWindows again(count_to(1'000'000), plan_of(8, 16), kRandom);
  const Ids first = starts_of(windows, {0, 0});
  const Ids later = starts_of(windows, {7, 1});
  CHECK(starts_of(again, {7, 1}) == later);
  CHECK(starts_of(again, {0, 0}) == first);
  CHECK(starts_of(windows, {0, 1}) != first);
  CHECK(starts_of(windows, {1, 0}) != first);
  CHECK(first[0] != first[1]);
  RandomWindows other_seed(count_to(1'000'000), plan_of(8, 16), {mix, 2267});
  CHECK(starts_of(other_seed, {0, 0}) != first);
  CHECK(windows.batches_per_epoch() == 7813);  // 999,999 targets, 128 in a batch
}

TEST_CASE("windows: H90 processes share the rows of one global batch") {
  BatchPlan part = plan_of(2, 4);
  part.all_rows = 4;
  RandomWindows all(count_to(1000), plan_of(4, 4), kRandom);
  SequentialWindows all_in_order = in_order(1000, plan_of(4, 4));
  for (const std::int64_t step : {0, 1, 70}) {
    Ids joined, joined_in_order;
    for (const std::int64_t first_row : {0, 2}) {
      part.first_row = first_row;
      RandomWindows rank(count_to(1000), part, kRandom);
      SequentialWindows rank_in_order = in_order(1000, part);
      for (const std::int32_t start : starts_of(rank, {step, 0})) joined.push_back(start);
      for (const std::int32_t start : starts_of(rank_in_order, {step, 0})) joined_in_order.push_back(start);
      CHECK(rank.batches_per_epoch() == all.batches_per_epoch());
      CHECK(rank_in_order.batches_per_epoch() == all_in_order.batches_per_epoch());
    }
    CHECK(joined == starts_of(all, {step, 0}));
    CHECK(joined_in_order == starts_of(all_in_order, {step, 0}));
  }
}

TEST_CASE("windows: each shuffled pass reads every window once, in an order of its own that is found again") {
  SequentialWindows windows(count_to(61), plan_of(3, 2), {0, true, kRandom});  // 30 windows, 10 batches
  const auto pass = [&](SequentialWindows& reader, std::int64_t epoch) {
    Ids starts;
    for (std::int64_t batch = 0; batch < 10; ++batch)
      for (const std::int32_t start : starts_of(reader, {epoch * 10 + batch, 0})) starts.push_back(start);
    return starts;
  };
  const Ids first = pass(windows, 0), second = pass(windows, 1);
  CHECK(first != second);
  CHECK_FALSE(std::is_sorted(first.begin(), first.end()));
  for (Ids starts : {first, second}) {
    std::sort(starts.begin(), starts.end());
    Ids expected;
    for (std::int32_t start = 0; start < 60; start += 2) expected.push_back(start);
    CHECK(starts == expected);
  }
  SequentialWindows resumed(count_to(61), plan_of(3, 2), {0, true, kRandom});
  CHECK(starts_of(resumed, {17, 0}) == Ids(second.begin() + 21, second.begin() + 24));
  CHECK(pass(resumed, 0) == first);
}

TEST_CASE("windows: all orders of a shuffled pass are equally likely") {
  SequentialWindows windows(count_to(4), plan_of(3, 1), {0, true, kRandom});
  std::map<Ids, int> seen;
  for (std::int64_t epoch = 0; epoch < 6000; ++epoch) ++seen[starts_of(windows, {epoch, 0})];
  CHECK(seen.size() == 6);
  for (const auto& [order, count] : seen) CHECK(std::abs(count - 1000) < 150);  // 5 standard deviations
}

TEST_CASE("windows: every step can be read without allocating once the batch has its size") {
  const WindowOptions random{plan_of(4, 8), Sampling::random, 0, false, kRandom};
  const WindowOptions shuffled{plan_of(4, 8), Sampling::sequential, 8, true, kRandom};
  std::vector<std::unique_ptr<Dataset>> datasets;
  datasets.push_back(make_windows(count_to(100), random));
  datasets.push_back(make_windows(count_to(100), shuffled));
  datasets.push_back(std::make_unique<RandomTokens>(10, plan_of(4, 8), kRandom));
  datasets.push_back(std::make_unique<FixedBatch>(Batch{4, 8, Ids(32, 1), Ids(32, 2)}));
  Batch batch;
  datasets[0]->fill(batch, {0, 0});
  const std::int32_t* inputs = batch.inputs.data();
  const std::int32_t* targets = batch.targets.data();
  for (const auto& dataset : datasets)
    for (std::int64_t step = 0; step < 9; ++step) {
      dataset->fill(batch, {step, 0});
      CHECK(batch.tokens() == 32);
      CHECK(batch.inputs.data() == inputs);
      CHECK(batch.targets.data() == targets);
    }
}

TEST_CASE("windows: the options choose the kind") {
  WindowOptions options{plan_of(2, 2), Sampling::sequential, 3, false, kRandom};
  CHECK(starts_of(*make_windows(count_to(20), options), {0, 0}) == Ids{0, 3});
  CHECK(dynamic_cast<SequentialWindows*>(make_windows(count_to(20), options).get()) != nullptr);
  options.sampling = Sampling::random;
  CHECK(dynamic_cast<RandomWindows*>(make_windows(count_to(20), options).get()) != nullptr);
  CHECK(message_of([] { RandomWindows(count_to(20), plan_of(1, 2), {}); }) ==
        "text: random windows and shuffling need a random source");
  CHECK(message_of([] {
          SequentialWindows(count_to(20), plan_of(1, 2), {0, true, {}});
        }) == "text: random windows and shuffling need a random source");
}

TEST_CASE(
    "dataset: a plan without rows, columns or micro-batches, or with rows outside of all rows, is refused") {
  const auto refused = [](const BatchPlan& plan) {
    return message_of([&] { RandomTokens(5, plan, kRandom); })
        .starts_with(
            "dataset: a batch needs at least one row, column and micro-batch, and rows among all rows\n");
  };
  CHECK(refused({0, 4}));
  CHECK(refused({4, 0}));
  CHECK(refused({4, 4, 0}));
  CHECK(refused({4, 4, 1, -1, 8}));
  CHECK(refused({4, 4, 1, 5, 8}));
  CHECK_FALSE(refused({4, 4, 1, 4, 8}));
}

TEST_CASE("evaluation: every target comes exactly once, in order, whatever the sizes") {
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
  const auto refused = [](std::int64_t rows, std::int64_t cols, std::int64_t batches) {
    return message_of([&] { EvaluationWindows(count_to(11), rows, cols, batches); })
        .starts_with(
            "text: evaluation needs at least one row and column, and no negative number of batches\n");
  };
  CHECK(refused(0, 3, 0));
  CHECK(refused(2, 0, 0));
  CHECK(refused(2, 3, -1));
}

TEST_CASE("fixed batch: the tables are read and come at every position") {
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

TEST_CASE("fixed batch: everything wrong is refused with its place") {
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
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "handgrad test batch.json";
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

TEST_CASE("random tokens: all ids come, equally often, targets are the row moved on by one") {
  RandomTokens tokens(10, plan_of(100, 50), kRandom);
  Batch batch, again;
  tokens.fill(batch, {3, 1});
  std::vector<int> seen(10);
  for (const std::int32_t id : batch.inputs) ++seen.at(static_cast<std::size_t>(id));
  for (const int count : seen) CHECK(std::abs(count - 500) < 110);  // 5 standard deviations
  for (std::size_t row = 0; row < 100; ++row)
    for (std::size_t col = 0; col + 1 < 50; ++col)
      REQUIRE(batch.targets[row * 50 + col] == batch.inputs[row * 50 + col + 1]);
  int last_targets = 0;  // each row has a last target of its own, not the first token of the next row
  for (std::size_t row = 0; row + 1 < 100; ++row)
    if (batch.targets[row * 50 + 49] == batch.inputs[(row + 1) * 50]) ++last_targets;
  CHECK(last_targets < 40);
  tokens.fill(again, {3, 1});
  CHECK(again.inputs == batch.inputs);
  tokens.fill(again, {4, 1});
  CHECK(again.inputs != batch.inputs);
  CHECK(message_of([] { RandomTokens(0, plan_of(1, 1), kRandom); }) ==
        "random tokens: vocab_size must be from 1 to 2147483647, got 0");
  CHECK(message_of([] { RandomTokens(5, plan_of(1, 1), {}); }) == "random tokens: need a random source");
}
