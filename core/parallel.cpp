#include "handgrad/core/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace handgrad {
namespace {

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Bits 15 and 6 of the x86 control register flush results and operands; bit 24 of arm64's does both.
std::uint64_t control_register() {
#if defined(__x86_64__)
  return _mm_getcsr();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
#else
  return 0;
#endif
}

void set_control_register([[maybe_unused]] std::uint64_t value) {
#if defined(__x86_64__)
  _mm_setcsr(static_cast<unsigned>(value));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" : : "r"(value));
#endif
}

constexpr std::uint64_t kFlushBits =
#if defined(__x86_64__)
    0x8040;
#else
    1ULL << 24;
#endif

constinit thread_local bool inside_chunk = false;

// One job at a time. `ticket_` holds the job's number (upper half) and the next unclaimed chunk (lower half); a
// chunk is claimed by compare-exchange, which fails if the job has changed meanwhile. The caller waits for claimed
// chunks only: a worker that the system has suspended never delays it.
class Workers {
 public:
  ~Workers() { resize(1); }

  int threads() const { return threads_.load(std::memory_order_relaxed); }

  void resize(int threads) {
    const std::lock_guard job_lock(job_mutex_);
    if (threads == this->threads()) return;
    {
      const std::lock_guard lock(sleep_mutex_);
      stopping_.store(true);
    }
    wake_.notify_all();
    for (std::thread& worker : pool_) worker.join();
    pool_.clear();
    stopping_.store(false);
    for (int i = 1; i < threads; ++i) pool_.emplace_back([this] { work(); });
    threads_.store(threads, std::memory_order_relaxed);
  }

  bool run(std::int64_t chunks, void (*body)(void*, std::int64_t), void* context) {
    const std::unique_lock job_lock(job_mutex_, std::try_to_lock);
    if (!job_lock.owns_lock() || pool_.empty()) return false;
    const std::uint64_t job = ++job_number_ << 32;
    ticket_.store(job | kClosed,
                  std::memory_order_seq_cst);  // no chunk can be claimed while the fields change
    body_.store(body, std::memory_order_release);
    context_.store(context, std::memory_order_release);
    chunks_.store(static_cast<std::uint32_t>(chunks), std::memory_order_release);
    control_.store(control_register(), std::memory_order_release);
    done_.store(0, std::memory_order_release);
    ticket_.store(job, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      { const std::lock_guard lock(sleep_mutex_); }
      wake_.notify_all();
    }
    inside_chunk = true;
    while (claim_and_run()) {
    }
    inside_chunk = false;
    for (int spins = 0; done_.load(std::memory_order_acquire) != static_cast<std::uint32_t>(chunks);
         ++spins) {
      if (spins < kSpinsBeforeYield) {
        pause_briefly();
      } else {
        std::this_thread::yield();
      }
    }
    return true;
  }

 private:
  static constexpr std::uint64_t kClosed = 0xffffffff;  // above every number of chunks
  static constexpr int kSpinsBeforeYield = 2000;        // about 40 us
  static constexpr int kSpinsBeforeSleep = 4000;        // the serial parts between two products are shorter

  bool work_waiting() const {
    const std::uint64_t ticket = ticket_.load(std::memory_order_seq_cst);
    return (ticket & 0xffffffff) < chunks_.load(std::memory_order_acquire);
  }

  bool claim_and_run() {
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    for (;;) {
      const auto body = body_.load(std::memory_order_acquire);
      void* const context = context_.load(std::memory_order_acquire);
      const std::uint32_t chunks = chunks_.load(std::memory_order_acquire);
      const std::uint64_t control = control_.load(std::memory_order_acquire);
      if ((ticket & 0xffffffff) >= chunks) return false;
      // A field of a later job can only be seen after that job has changed the ticket, and then this fails.
      if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                         std::memory_order_acquire))
        continue;
      if (control != control_register()) set_control_register(control);
      body(context, static_cast<std::int64_t>(ticket & 0xffffffff));
      done_.fetch_add(1, std::memory_order_release);
      return true;
    }
  }

  void work() {
    inside_chunk = true;
    while (!stopping_.load(std::memory_order_relaxed)) {
      int spins = 0;
      while (spins < kSpinsBeforeSleep && !stopping_.load(std::memory_order_relaxed)) {
        if (work_waiting() && claim_and_run()) {
          spins = 0;
        } else {
          pause_briefly();
          ++spins;
        }
      }
      std::unique_lock lock(sleep_mutex_);
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      wake_.wait(lock, [this] { return stopping_.load() || work_waiting(); });
      sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    }
  }

  std::mutex job_mutex_, sleep_mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> pool_;
  std::atomic<int> threads_{1}, sleepers_{0};
  std::atomic<bool> stopping_{false};
  std::uint64_t job_number_ = 0;

  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  std::atomic<void (*)(void*, std::int64_t)> body_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<std::uint32_t> chunks_{0};
  std::atomic<std::uint64_t> control_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};
};

Workers& workers() {
  static Workers instance;
  static const bool started = [] {
    instance.resize(available_cores());
    return true;
  }();
  (void)started;
  return instance;
}

/// Cores by the quota of the control group (version 2, then version 1); `none` without a quota.
int quota_cores(int none) {
  std::string quota, period;
  if (std::ifstream file("/sys/fs/cgroup/cpu.max"); !(file >> quota >> period)) {
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  }
  try {
    const double cores = std::stod(quota) / std::stod(period);
    return cores > 0 ? std::max(1, static_cast<int>(std::ceil(cores))) : none;
  } catch (const std::exception&) {  // "max", or no such file
    return none;
  }
}

}  // namespace

int available_cores() {
  cpu_set_t mask;
  int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cores = std::max(1, CPU_COUNT(&mask));
  return std::min(cores, quota_cores(cores));
}

int thread_count() { return workers().threads(); }

void set_thread_count(int threads) { workers().resize(std::max(1, threads)); }

void internal::run_chunks(std::int64_t chunks, void (*body)(void*, std::int64_t), void* context) {
  if (!inside_chunk && chunks > 1 && chunks < (std::int64_t{1} << 32) - 1024 &&
      workers().run(chunks, body, context))
    return;
  for (std::int64_t i = 0; i < chunks; ++i) body(context, i);
}

FlushSubnormals::FlushSubnormals() : before_(control_register()) {
  set_control_register(before_ | kFlushBits);
}
FlushSubnormals::~FlushSubnormals() { set_control_register(before_); }

}  // namespace handgrad
