// Workers: every chunk once, the same bits for any number of them.
#include "handgrad/core/parallel.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "expect.h"
#include "handgrad/core/ops.h"

using namespace handgrad;

namespace {

/// Restores the number of threads.
class Threads {
 public:
  explicit Threads(int threads) { set_thread_count(threads); }
  ~Threads() { set_thread_count(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_ = thread_count();
};

/// Lets a body wait until `count` threads are in it, so that a test does not depend on who wakes up first.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}
  bool wait() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    missing_.fetch_sub(1);
    while (missing_.load() > 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return missing_.load() <= 0;
  }

 private:
  std::atomic<int> missing_;
};

}  // namespace

TEST_CASE("parallel: every chunk is done once, for any number of chunks and threads") {
  for (const int threads : {1, 2, 3, 8}) {
    const Threads guard(threads);
    CHECK(thread_count() == threads);
    for (const std::int64_t chunks : {0, 1, 2, 3, 7, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(chunks));
      parallel_for(chunks, [&](std::int64_t i) { ++done[static_cast<std::size_t>(i)]; });
      for (const auto& count : done) CHECK(count.load() == 1);
    }
  }
}

TEST_CASE("parallel: ranges cover everything without overlap, in chunks of the grain") {
  const Threads guard(3);
  for (const std::int64_t count : {0, 1, 9, 10, 11, 1000}) {
    std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
    std::atomic<int> wrong{0};
    parallel_ranges(count, 10, [&](std::int64_t begin, std::int64_t end) {
      wrong += begin % 10 != 0 || end > count || (end - begin != 10 && end != count);
      for (std::int64_t i = begin; i < end; ++i) ++done[static_cast<std::size_t>(i)];
    });
    CHECK(wrong.load() == 0);
    for (const auto& times : done) CHECK(times.load() == 1);
  }
  CHECK(grain_for(1e9) == 1);
  CHECK(grain_for(0.2) == 100000);
}

TEST_CASE("parallel: many small jobs in a row") {
  const Threads guard(3);
  std::int64_t total = 0;
  for (int job = 0; job < 20000; ++job) {
    std::atomic<std::int64_t> sum{0};
    parallel_for(1 + job % 5, [&](std::int64_t i) { sum += i + 1; });
    total += sum;
  }
  CHECK(total == 4000 * (1 + 3 + 6 + 10 + 15));
}

TEST_CASE("parallel: workers really work, also after they have gone to sleep") {
  const Threads guard(2);
  for (int round = 0; round < 3; ++round) {
    Meeting meeting(2);
    std::atomic<int> met{0};
    parallel_for(2, [&](std::int64_t) { met += meeting.wait(); });
    CHECK(met.load() == 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST_CASE("parallel: a parallel_for inside of another is done by the thread that asks") {
  const Threads guard(3);
  std::atomic<int> inner{0};
  parallel_for(4, [&](std::int64_t) {
    const auto self = std::this_thread::get_id();
    parallel_for(5, [&](std::int64_t) { inner += std::this_thread::get_id() == self; });
  });
  CHECK(inner.load() == 20);
}

TEST_CASE("parallel: two threads may ask at once") {
  const Threads guard(2);
  std::atomic<std::int64_t> sum{0};
  const auto work = [&] {
    for (int i = 0; i < 2000; ++i) parallel_for(4, [&](std::int64_t k) { sum += k; });
  };
  std::thread other(work);
  work();
  other.join();
  CHECK(sum.load() == 2 * 2000 * 6);
}

TEST_CASE("parallel: the number of threads can change at any time, and is at least 1") {
  const Threads guard(2);
  CHECK(available_cores() >= 1);
  for (const int threads : {1, 4, 2, 0, -3, 3}) {
    set_thread_count(threads);
    CHECK(thread_count() == std::max(1, threads));
    std::atomic<int> done{0};
    parallel_for(10, [&](std::int64_t) { ++done; });
    CHECK(done.load() == 10);
  }
}

TEST_CASE(
    "parallel: subnormal numbers are flushed on every thread while the caller asks for it, and only then") {
  const Threads guard(2);
  const auto halved_is_zero = [] {
    Meeting meeting(2);
    std::atomic<int> met{0}, zeros{0};
    parallel_for(2, [&](std::int64_t) {
      met += meeting.wait();
      volatile float smallest = 1.17549435e-38F;
      volatile float half = smallest * 0.5F;
      zeros += half == 0;
    });
    REQUIRE(met.load() == 2);
    return zeros.load();
  };
  CHECK(halved_is_zero() == 0);
  {
    const FlushSubnormals outer;
    CHECK(halved_is_zero() == 2);
    { const FlushSubnormals inner; }
    CHECK(halved_is_zero() == 2);
  }
  CHECK(halved_is_zero() == 0);
}

TEST_CASE("parallel: the same bits for 1, 2 and 3 threads (H95)") {
  const Array prime = expect::normal({10007}, 1), large = expect::normal({37, 211, 129}, 2);
  const auto results = [&] {
    std::vector<Array> all;
    for (const Array& numbers : {prime, large}) {
      const Tensor x = Tensor::constant(numbers).requires_grad();
      std::vector<Tensor> outputs = {sum(x), mean(x), max(x), sum(x, {0}), var(x, {-1})};
      if (x.rank() == 3)
        for (const Dims& dims : {Dims{1}, Dims{0, 1}, Dims{0, 2}, Dims{1, 2}}) {
          outputs.push_back(sum(x, dims));
          outputs.push_back(var(x, dims));
          outputs.push_back(max(x, dims));
        }
      for (const Tensor& y : outputs) {
        Random random(3);
        y.backward(expect::normal_array(y.shape(), 0, 1, random));
        all.push_back(y.array());
      }
      if (x.rank() == 3) {
        all.push_back(permute(x, {2, 0, 1}).array());
        all.push_back(permute(x, {1, 0, 2}).array());
      }
      all.push_back(x.grad());
    }
    return all;
  };
  std::vector<Array> one;
  for (const int threads : {1, 2, 3}) {
    const Threads guard(threads);
    const std::vector<Array> now = results();
    if (threads == 1) one = now;
    REQUIRE(now.size() == one.size());
    for (std::size_t i = 0; i < now.size(); ++i)
      CHECK_MESSAGE(expect::same_bits(now[i], one[i]), "result ", i);
  }
}

TEST_CASE("parallel: rows of a large operand give the bits that they give alone, values and gradients") {
  constexpr std::int64_t kRows = 700, kColumns = 300;  // several chunks of even the cheapest operation
  const Array a = expect::normal({kRows, kColumns}, 1), b = expect::normal({kRows, kColumns}, 2);
  const Array dy = expect::normal({kRows, kColumns}, 3);
  const Tensor scale = Tensor::constant(expect::normal({kColumns}, 4)), shift = scale + 1.0;
  const Tensor weight = Tensor::constant(expect::normal({kColumns, kColumns}, 5));
  const Tensor half = Tensor::scalar(0.5);
  using Function = std::function<Tensor(const Tensor&, const Tensor&)>;
  const std::pair<const char*, Function> functions[] = {
      {"add", [](auto& x, auto& z) { return x + z; }},
      {"sub", [](auto& x, auto& z) { return x - z; }},
      {"mul", [](auto& x, auto& z) { return x * z; }},
      {"div", [](auto& x, auto& z) { return x / z; }},
      {"a row for all", [&](auto& x, auto& z) { return (x - scale) * (shift / z); }},
      {"a number for all", [&](auto& x, auto& z) { return half * x - z / half; }},
      {"numbers", [](auto& x, auto& z) { return 2.0 - x * 3.0 + (z / 4.0 - 1.0); }},
      {"gelu, relu", [](auto& x, auto& z) { return gelu(x) + relu(z); }},
      {"powers", [](auto& x, auto& z) { return pow(x, 2.0) + pow(square(x) + 1.0, z); }},
      {"where", [](auto& x, auto& z) { return where(x > z, x, masked_fill(z, x < 0.0, 7)); }},
      {"softmax", [](auto& x, auto& z) { return softmax(x) + log_softmax(z); }},
      {"norms", [&](auto& x, auto& z) { return layer_norm(x, scale, shift) + rms_norm(z, scale); }},
      {"linear", [&](auto& x, auto& z) { return linear(x, weight, shift) + z; }},
      {"parts",
       [](auto& x, auto& z) {
         return concat({slice(x, 1, 9, 200), slice(z, -1, 191, 300)}, 1);
       }},
      {"reductions",
       [](auto& x, auto& z) { return x * sum(z, -1, KeepDim::yes) + var(z, -1, KeepDim::yes); }},
      {"max", [](auto& x, auto& z) { return x + max(z, -1, KeepDim::yes); }},
      {"expand", [](auto& x, auto& z) { return x * expand(mean(z, -1, KeepDim::yes), x.shape()); }},
      {"transposes", [](auto& x, auto& z) { return transpose(transpose(x, 0, 1) * 2.0, 0, 1) + z; }},
  };
  for (const auto& [name, f] : functions) {
    CAPTURE(std::string(name));
    const auto results = [&](std::int64_t begin, std::int64_t end) {
      const auto part = [&](const Array& all) { return slice(Tensor::constant(all), 0, begin, end).array(); };
      const Tensor x = expect::leaf(part(a)), z = expect::leaf(part(b));
      const Tensor y = f(x, z);
      y.backward(part(dy));
      return std::vector<Tensor>{Tensor::constant(y.array()), Tensor::constant(x.grad()),
                                 Tensor::constant(z.grad())};
    };
    const std::vector<Tensor> all = results(0, kRows);
    for (const std::int64_t begin : {0, 333, 697}) {
      const std::vector<Tensor> alone = results(begin, begin + 3);
      for (std::size_t i = 0; i < all.size(); ++i)
        CHECK_MESSAGE(expect::same_bits(slice(all[i], 0, begin, begin + 3).array(), alone[i].array()), "row ",
                      begin, ", result ", i);
    }
  }
}
