// Long graphs, long runs: nothing recurses, nothing grows, nothing is allocated in a steady loop.
#include <pthread.h>

#include "expect.h"
#include "handgrad/core/autograd.h"
#include "handgrad/core/memory.h"
#include "handgrad/core/ops.h"

using namespace handgrad;

namespace {

/// Runs `body` on a thread with a small stack, so that a recursion as deep as the graph would crash long before it
/// reached the 8 MiB that a program has by default.
template <class Body>
void on_small_stack(const Body& body) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 512 * 1024) == 0);
  pthread_t thread;
  const auto run = [](void* context) -> void* {
    (*static_cast<const Body*>(context))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, const_cast<void*>(static_cast<const void*>(&body))) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
}

constexpr int kLong = 1'000'000;

/// Whether blocks go back to the system at once, so that sanitizers see their use after release.
bool pool_is_bypassed() {
  Array(Shape{16});
  const auto before = pool_stats().system_allocations;
  Array(Shape{16});
  return pool_stats().system_allocations != before;
}

}  // namespace

TEST_CASE("memory: an array that does not fit is an error before the system is asked for it") {
  CHECK(available_memory() > 0);
  CHECK_THROWS_WITH_AS(Array(Shape{std::int64_t{1} << 40}, DType::float32),
                       doctest::Contains(" GiB more are needed, "), MemoryError);
}

TEST_CASE("autograd: a chain of a million operations is built, differentiated and dropped (H18)") {
  double gradient = 0, value = 0;
  on_small_stack([&] {
    const Tensor x = expect::leaf({0}, DType::float64);
    Tensor y = x;
    for (int i = 0; i < kLong; ++i) y = y + 1.0;
    value = y.item();
    y.backward();
    gradient = x.grad().item();
  });
  CHECK(value == kLong);
  CHECK(gradient == 1);
}

TEST_CASE("autograd: a long chain with saved arrays and two ways through each link") {
  double gradient = 0;
  on_small_stack([&] {
    const Tensor x = expect::leaf({1}, DType::float64);
    Tensor y = x;
    for (int i = 0; i < 100'000; ++i) y = (y * x + y) * 0.5;
    y.backward();
    gradient = x.grad().item();  // y = ((x + 1) / 2)^n x at x = 1
  });
  CHECK(gradient == doctest::Approx(100'000 * 0.5 + 1).epsilon(1e-9));
}

TEST_CASE("autograd: a long chain is dropped without a backward pass") {
  on_small_stack([] {
    const Tensor x = expect::leaf({1});
    Tensor y = x;
    for (int i = 0; i < kLong; ++i) y = y + 1.0;
  });
}

TEST_CASE("autograd: a steady loop asks the system for no memory") {
  if (pool_is_bypassed()) {
    MESSAGE("skipped: this build gives every block back to the system at once");
    return;
  }
  Tensor x = expect::leaf(expect::normal({8, 16}, 1)), w = expect::leaf(expect::normal({16, 16}, 2));
  const auto step = [&] {
    const Tensor h = tanh(matmul(x, w) + mean(x, -1, KeepDim::yes));
    const Tensor parts = concat({slice(h, 1, 0, 8), slice(h, 1, 8, 16)}, 0);
    const Tensor loss = sum(var(permute(reshape(parts, {4, 4, 8}), {1, 0, 2}), {0, 2})) + max(square(h));
    loss.backward();
    x.zero_grad();
    w.zero_grad();
  };
  for (int i = 0; i < 3; ++i) step();
  const PoolStats before = pool_stats();
  for (int i = 0; i < 100; ++i) step();
  CHECK(pool_stats().system_allocations == before.system_allocations);
  CHECK(pool_stats().bytes_from_system == before.bytes_from_system);
}

TEST_CASE("autograd: adding up losses by value keeps memory flat, adding up nodes keeps the graphs (H31)") {
  Tensor w = expect::leaf({0.5});
  const auto loss_of_step = [&] { return square(w * 2.0 - 1.0); };
  double total = 0;
  for (int i = 0; i < 10; ++i) total += loss_of_step().item();
  pool_trim();
  const std::size_t start = pool_stats().bytes_from_system;
  for (int i = 0; i < 10'000; ++i) {
    const Tensor loss = loss_of_step();
    loss.backward();
    total += loss.item();
    w.zero_grad();
  }
  pool_trim();
  CHECK(pool_stats().bytes_from_system == start);

  Tensor sum_of_nodes = loss_of_step();
  for (int i = 0; i < 10'000; ++i) sum_of_nodes = sum_of_nodes + loss_of_step();
  CHECK(pool_stats().bytes_from_system > start + 1'000'000);
  sum_of_nodes = Tensor();
  pool_trim();
  CHECK(pool_stats().bytes_from_system == start);
  CHECK(std::isfinite(total));
}
