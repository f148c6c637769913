// A text cut into two parts, and the parts into rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "handgrad/data/dataset.h"
#include "handgrad/data/fixed_batch.h"
#include "handgrad/data/windows.h"
#include "test_data.h"

using namespace handgrad::data;
using namespace handgrad::data::testing;

namespace {

// The first input of every row.
Ids starts_of(Dataset& dataset, const Position& position) {
  Batch batch;
  dataset.fill(batch, position);
  Ids starts;
  for (std::int64_t row = 0; row < batch.rows; ++row)
    starts.push_back(batch.inputs[static_cast<std::size_t>(row * batch.cols)]);
  return starts;
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

TEST_CASE("split: a part too short for one row is rejected with all numbers") {
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
  RandomWindows other_seed(count_to(1'000'000), plan_of(8, 16), AddressedRandom{2267});
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

TEST_CASE("windows: each shuffled pass reads every window once, in another order that can be reproduced") {
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
}

TEST_CASE(
    "dataset: a plan without rows, columns or micro-batches, or with rows outside the data, is rejected") {
  const auto rejected = [](const BatchPlan& plan) {
    return message_of([&] { RandomTokens(5, plan, kRandom); })
        .starts_with(
            "dataset: a batch needs at least one row, column and micro-batch, and rows among all rows\n");
  };
  CHECK(rejected({0, 4}));
  CHECK(rejected({4, 0}));
  CHECK(rejected({4, 4, 0}));
  CHECK(rejected({4, 4, 1, -1, 8}));
  CHECK(rejected({4, 4, 1, 5, 8}));
  CHECK_FALSE(rejected({4, 4, 1, 4, 8}));
}
