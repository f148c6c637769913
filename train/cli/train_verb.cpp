// handgrad train CONFIG
#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/models/generate.h"
#include "handgrad/nn/summary.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/cli/progress.h"
#include "handgrad/train/cli/signals.h"
#include "handgrad/train/cli/verbs.h"
#include "handgrad/train/session.h"

namespace handgrad::train::cli {
namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  ConfigOptions config;
  std::string out, resume, weights, pace;
  bool overwrite = false, dry_run = false, quiet = false;
};

constexpr std::int64_t kSampleTokens = 64;
constexpr double kSampleTemperature = 0.7;

/// What the model writes by itself, on one line; empty when its tokens are no text.
std::string sample_text(const Run& run) {
  const data::Tokenizer* tokenizer = run.source().tokenizer();
  if (tokenizer == nullptr) return "";
  const std::vector<std::int32_t> prompt{0};
  auto ids = models::generate(
      run.model(), prompt,
      {.max_new_tokens = kSampleTokens, .temperature = kSampleTemperature, .seed = run.seed()});
  std::string text = tokenizer->decode(ids);
  for (char& c : text)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  return text;
}

std::shared_ptr<spdlog::logger> open_log(const RunFolder& folder) {
  auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>((folder.path() / "log.txt").string());
  auto log = std::make_shared<spdlog::logger>("run", std::move(sink));
  log->set_pattern("%Y-%m-%d %H:%M:%S  %l  %v");
  log->flush_on(spdlog::level::info);
  return log;
}

/// runs/toy for configs/toy.json.
fs::path default_folder(const TrainOptions& options) {
  return options.out.empty() ? fs::path("runs") / fs::path(options.config.config).stem()
                             : fs::path(options.out);
}

ConfigDocument load_document(const TrainOptions& options) {
  if (!options.config.config.empty())
    return ConfigDocument::load(options.config.config, options.config.all_sets());
  return ConfigDocument::load(fs::path(options.resume) / "config.json", options.config.all_sets());
}

int train_run(const TrainOptions& options) {
  if (options.config.config.empty() && options.resume.empty())
    throw ValueError("train", "needs a config", {}, "handgrad train configs/toy.json");
  options.config.apply_threads();
  const Pace pace = Pace::parse(options.pace);
  const StopOnSignal signals;
  Run run(load_document(options), &signals.requested());
  if (!options.weights.empty()) load_weights(options.weights, run.model());
  if (options.dry_run) {
    fmt::print("{}\n{}", describe(run, "model"), nn::summary(run.model()));
    return 0;
  }
  const bool resumed = !options.resume.empty();
  if (resumed) {
    const auto latest = find_latest(options.resume);
    if (!latest) throw Error("train", fmt::format("'{}' holds no checkpoint to go on from", options.resume));
    load_checkpoint(*latest, run.trainer());
  }
  const fs::path path = resumed ? fs::path(options.resume) : default_folder(options);
  RunFolder folder = resumed ? RunFolder::open(path)
                             : RunFolder::create(path, options.overwrite ? RunFolder::Existing::overwrite
                                                                         : RunFolder::Existing::refuse);
  if (!resumed) folder.write_config(run.effective());
  folder.write_meta(run_meta(run.seed()));
  const auto log = open_log(folder);
  for (const std::string& note : run.notes()) log->info(note);

  const std::string before = options.quiet ? "" : sample_text(run);
  Progress progress(run, {options.quiet, pace, path.filename().string()});
  log->info("step {} of {}", run.trainer().step_count(), run.steps());
  Ending ending{};
  try {
    Session session(run, std::move(folder), progress);
    ending = session.train();
  } catch (const std::exception& error) {
    progress.clear_line();
    log->error(error.what());
    throw;
  }
  progress.clear_line();
  log->info("{} at step {}", ending == Ending::finished ? "finished" : "stopped", run.trainer().step_count());
  const std::string name = path.generic_string();
  if (ending == Ending::stopped) {
    fmt::print(
        stderr,
        "\nstopped after step {} of {}; everything is saved in {}\n  go on: handgrad train --resume {}\n",
        run.trainer().step_count(), run.steps(), name, name);
    return signals.exit_status();
  }
  progress.finished(run);
  if (options.quiet) return 0;
  if (!before.empty()) fmt::print("text before  {}\ntext after   {}\n", before, sample_text(run));
  fmt::print("\nsaved in {}\n{}", name,
             next_lines({{fmt::format("handgrad inspect {} scale shift", name),
                          "the way of each norm, step by step"},
                         {fmt::format("handgrad generate {} --prompt \"The \"", name), "what it writes"}}));
  return 0;
}

}  // namespace

void add_train(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = app.add_subcommand("train", "train a model from a config")->group("train");
  options->config.add_to(*verb, false);
  verb->add_option("--out", options->out, "the run's folder (default: runs/ and the config's name)")
      ->option_text("DIR");
  verb->add_flag("--overwrite", options->overwrite, "replace the run that the folder holds");
  verb->add_option("--resume", options->resume, "go on with the run in this folder")->option_text("DIR");
  verb->add_option("--weights", options->weights,
                   "start from the weights of a checkpoint or a safetensors file")
      ->option_text("FILE");
  verb->add_option("--pace", options->pace, "at most so many steps a second, or 'key': one for each Enter")
      ->option_text("N|key");
  verb->add_flag("--dry-run", options->dry_run, "show the model and its parameters, train nothing");
  verb->add_flag("--quiet", options->quiet, "no progress and no tables");
  verb->callback([options, &chosen] { chosen.action = [options] { return train_run(*options); }; });
}

}  // namespace handgrad::train::cli
