// Bench: how long operations and training steps take. What `handgrad bench` prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/train/run.h"

namespace handgrad::cli {

/// Nanoseconds that one operation on a tiny tensor takes, in a chain of a thousand: the median of several chains.
struct OpTime {
  std::string op;          ///< "add"
  std::string shape;       ///< "[4]"
  double no_graph_ns = 0;  ///< forward under NoGrad
  double forward_ns = 0;   ///< forward with the graph recorded, and dropped
  double both_ns = 0;      ///< forward and backward
};

/// Times add, mul, layer_norm and others on the calling thread. Takes about a second.
std::vector<OpTime> bench_ops();
/// For people: a line for each operation.
std::string table(const std::vector<OpTime>& times);
/// [{"op", "shape", "no_graph_ns", "forward_ns", "both_ns"}]
nlohmann::ordered_json to_json(const std::vector<OpTime>& times);

/// What training steps of a run took.
struct StepTime {
  std::string config;  ///< the name that bench_step was given
  int threads = 0;     ///< that worked
  double ms = 0;       ///< one step: median of the samples
  /// @{ The fastest and the slowest sample.
  double ms_min = 0, ms_max = 0;
  /// @}
  double tokens_per_s = 0;     ///< tokens of the batch by median time
  double gflops = 0;           ///< 10^9 floating-point operations of the matrix products in a second
  double percent_of_peak = 0;  ///< of the multiply-adds that these threads can do at most, measured beside it
  double peak_rss_mib = 0;     ///< largest resident memory of the process
  double allocations_per_step = 0;  ///< calls to the system's allocator in steady state; 0 is promised
};

/// How much is measured.
struct StepBenchOptions {
  int samples = 15;         ///< timed samples; each has as many steps as last about `sample_ms`
  double sample_ms = 20;    ///< milliseconds
  double warm_up_ms = 200;  ///< steps before that, at least three
};

/// Trains `run` for a while and times it; `config` is only its name in the result.
StepTime bench_step(train::Run& run, std::string config, const StepBenchOptions& options = {});
/// For people: a line for each number.
std::string table(const StepTime& time);
/// {"config", "threads", "ms", "ms_min", "ms_max", "tokens_per_s", "gflops", "percent_of_peak", "peak_rss_mib",
/// "allocations_per_step"}
nlohmann::ordered_json to_json(const StepTime& time);

/// Floating-point operations of the matrix products of one training step on `rows` rows of `cols` tokens: forward and
/// backward of every Linear (6 for each weight and token) and of every attention (12 rows cols^2 width; what the
/// causal mask leaves out is counted, as usual).
double step_flops(models::Model& model, std::int64_t rows, std::int64_t cols);

/// Calls to `operator new` in this program so far. Only the handgrad program counts them (count_allocations.cpp);
/// elsewhere this is a null pointer.
[[gnu::weak]] std::uint64_t counted_allocations();

}  // namespace handgrad::cli
