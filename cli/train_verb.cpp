// handgrad train CONFIG
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "handgrad/cli/config_options.h"
#include "handgrad/cli/live_server.h"
#include "handgrad/cli/log.h"
#include "handgrad/cli/progress.h"
#include "handgrad/cli/terminal.h"
#include "handgrad/cli/verb.h"
#include "handgrad/core/error.h"
#include "handgrad/io/program_name.h"
#include "handgrad/train/open_run.h"
#include "handgrad/train/run_folder.h"
#include "handgrad/train/samples.h"
#include "handgrad/train/session.h"
#include "handgrad/view/next.h"
#include "handgrad/view/report.h"
#include "handgrad/view/text.h"

namespace handgrad::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct TrainOptions {
  ConfigOptions config;
  std::string out, resume, weights, pace, log_level = "warn";
  bool overwrite = false, dry_run = false, quiet = false;
  std::optional<int> serve;  // a port
};

constexpr std::size_t kSampleIndent = 14;  // "text before  " and the first character

/// What the model writes, as much as the terminal has room for on one line.
std::string short_sample(const train::Run& run) {
  const auto room = static_cast<std::int64_t>(terminal_columns() - kSampleIndent);
  return train::sample_text(run, std::min(train::kSampleTokens, room));
}

// ---- Which config, which folder

void check_options(const TrainOptions& options) {
  if (options.config.config.empty() && options.resume.empty())
    throw ValueError("train", "needs a config", {}, io::program_name() + " train configs/toy.json");
  if (options.resume.empty()) return;
  const std::pair<const char*, bool> others[] = {{"--out", !options.out.empty()},
                                                 {"--overwrite", options.overwrite},
                                                 {"--weights", !options.weights.empty()}};
  for (const auto& [name, given] : others)
    if (given)
      throw ValueError("train", fmt::format("{} cannot be given with --resume, which continues in the run's "
                                            "folder with the run's weights",
                                            name));
}

/// runs/toy for configs/toy.json.
fs::path folder_of(const TrainOptions& options) {
  if (!options.resume.empty()) return options.resume;
  if (!options.out.empty()) return options.out;
  return fs::path("runs") / fs::path(options.config.config).stem();
}

/// The command line, then CONFIG if it is given, then the run's own. A resumed run ignores the old stop_after.
train::ConfigDocument load_document(const TrainOptions& options) {
  std::vector<std::string> sets = options.config.all_sets();
  if (!options.config.config.empty()) return train::ConfigDocument::load(options.config.config, sets);
  sets.insert(sets.begin(), "train.stop_after=0");
  return train::ConfigDocument::load(train::RunFolder::open(options.resume).path() / "config.json", sets);
}

// ---- The run

/// A new run with the weights that were asked for, or the resumed one.
train::OpenedRun opened_run(const TrainOptions& options, const std::atomic<bool>& stop) {
  const train::ConfigDocument document = load_document(options);
  if (!options.resume.empty())
    return train::open_run(
        options.resume,
        {.config = &document, .first_weights = options.dry_run, .resume = true, .stop = &stop});
  return {train::new_run(document, options.weights, &stop), {}, 0, {}};
}

std::string try_line(const view::Command& command) {
  return fmt::format("  {}: {}\n", command.second, command.first);
}

void print_stopped(const train::Run& run, const std::string& folder) {
  fmt::print(stderr, "\nstopped after step {} of {}; everything is saved in {}\n{}",
             run.trainer().step_count(), run.steps(), folder,
             try_line(view::suggestion(view::Next::resume, {folder})));
}

void print_nothing_to_do(const train::Run& run, const std::string& folder) {
  const std::int64_t step = run.trainer().step_count();
  if (step < run.steps()) {
    fmt::print("{} is already at step {}, train.stop_after is {}\n", folder, step, run.last_step());
    return;
  }
  fmt::print("{} is complete: step {} of {}\n{}", folder, step, run.steps(),
             try_line(view::suggestion(view::Next::more_steps, {folder, std::to_string(2 * step)})));
}

void print_saved(const std::string& folder, const train::Run& run, const Movement& movement) {
  std::vector<view::Command> next;
  if (!run.inspected().empty()) {
    std::vector<std::string> words{folder};  // and "scale", "shift", or what else the model's norms learn
    words.insert(words.end(), movement.kinds().begin(), movement.kinds().end());
    next.push_back(view::suggestion(view::Next::norms, words));
  }
  next.push_back(view::suggestion(view::Next::generate, {folder}));
  fmt::print("\nsaved in {0}     the page: {0}/{1}\n{2}", folder, view::kReportFile,
             view::next_lines(next, terminal_columns()));
}

/// Warns where `attempt` fails: a page is worth no more, the training has been saved.
template <class Attempt>
void or_warn(Log& log, const char* what, const Attempt& attempt) {
  try {
    attempt();
  } catch (const std::exception& error) {
    log.warn(fmt::format("{}: {}", what, error_text(error)));
  }
}

/// The page stays until `stop`, and stderr says so after the `state` of things.
void stay(const LiveServer* server, const std::atomic<bool>& stop, const std::string& state) {
  if (server == nullptr || stop) return;
  std::fflush(stdout);
  fmt::print(stderr, "\n{}: the page stays at {} until Ctrl-C\n", state, server->url());
  while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

/// The page in the run's folder, and the last of the one that is served.
void leave_page(const train::Run& run, const fs::path& folder, LiveServer* server, Log& log) {
  Json data;
  or_warn(log, "there is no page", [&] {
    data = view::report_data(folder, {.run = &run});
    view::write_run_report(data, folder);
  });
  if (server != nullptr)
    or_warn(log, "the page that is served is not the last", [&] { server->finish(data); });
}

/// Logs parameters that have no gradient, which train.allow_unused allows.
class SkippedLog final : public train::StepObserver {
 public:
  explicit SkippedLog(Log& log) : log_(log) {}
  void after_step(const train::Trainer& /*trainer*/, const train::StepReport& report) override {
    if (!report.skipped.empty())
      log_.warn(fmt::format("no gradient in step {}, not updated: {}", report.step,
                            fmt::join(report.skipped, ", ")));
  }

 private:
  Log& log_;
};

train::Ending train_session(train::Run& run, train::RunFolder folder, LiveServer* server, Progress& progress,
                            Log& log, const std::atomic<bool>& stop) {
  log.info(fmt::format("step {} of {}", run.trainer().step_count(), run.steps()));
  const fs::path path = folder.path();
  try {
    train::Session session(run, std::move(folder));
    if (server != nullptr) {
      run.trainer().add_observer(*server);  // before the terminal, which may wait for a key
      server->show(path);
    }
    SkippedLog skipped(log);
    run.trainer().add_observer(skipped);
    run.trainer().add_observer(progress);
    const train::Ending ending = session.train();
    progress.clear_line();
    log.info(fmt::format("{} at step {}", ending == train::Ending::finished ? "finished" : "stopped",
                         run.trainer().step_count()));
    leave_page(run, path, server, log);
    return ending;
  } catch (const std::exception& error) {
    progress.clear_line();
    const auto* non_finite = dynamic_cast<const train::NonFiniteError*>(&error);
    if (non_finite != nullptr) {
      leave_page(run, path, server, log);
    } else if (server != nullptr) {  // the folder may be gone
      or_warn(log, "the page that is served has no end", [&] { server->finish(nullptr); });
    }
    log.error_in_file(error_text(error));
    if (non_finite != nullptr) stay(server, stop, non_finite->message());
    throw;
  }
}

int train_run(const TrainOptions& options) {
  check_options(options);
  options.config.apply_threads();
  const Pace pace = Pace::parse(options.pace);
  const fs::path path = folder_of(options);
  const bool resumed = !options.resume.empty();
  train::RunFolder::Lock lock;
  if (!options.dry_run) {
    lock.take(path);  // before anything in it is recovered, read or replaced
    if (resumed) train::RunFolder::recover(path);
  }
  StopOnSignal signals;
  const train::OpenedRun opened = opened_run(options, signals.requested());
  train::Run& run = *opened.run;
  if (options.dry_run) {
    dry_run(run, train::run_name(folder_of(options)));
    return 0;
  }
  std::vector<std::string> notes = run.notes();
  notes.insert(notes.end(), opened.changes.begin(), opened.changes.end());
  if (resumed && run.trainer().step_count() >= run.last_step()) {
    print_nothing_to_do(run, path.string());
    return 0;
  }
  train::RunFolder folder =
      resumed ? train::RunFolder::open(path)
              : train::RunFolder::create(path, options.overwrite ? train::RunFolder::Existing::overwrite
                                                                 : train::RunFolder::Existing::reject);
  lock.take(path);  // of a folder that was not there before
  Log log(folder.path() / "log.txt", options.log_level);
  for (const std::string& note : notes) log.info(note);

  const std::string before = options.quiet ? "" : short_sample(run);
  Progress progress(run, {.quiet = options.quiet,
                          .pace = pace,
                          .title = train::run_name(folder_of(options)),
                          .recording = resumed ? folder.recording() : fs::path(),
                          .notes = notes});
  std::unique_ptr<LiveServer> server;
  if (options.serve) {
    server = std::make_unique<LiveServer>(*options.serve);
    fmt::print(stderr, "live      {}\n\n", server->url());
  }
  signals.listen();
  const train::Ending ending =
      train_session(run, std::move(folder), server.get(), progress, log, signals.requested());
  if (ending == train::Ending::stopped) {
    print_stopped(run, path.generic_string());
    return signals.exit_status();
  }
  progress.finished();
  if (!options.quiet) {
    if (!before.empty()) fmt::print("text before  {}\ntext after   {}\n", before, short_sample(run));
    print_saved(path.generic_string(), run, progress.movement());
  }
  stay(server.get(), signals.requested(), "trained");
  return 0;
}

}  // namespace

Verb train_verb() {
  auto options = std::make_shared<TrainOptions>();
  return {
      .name = "train",
      .purpose = "train a model from a config, or resume a run",
      .group = Group::train,
      .options = options->config.options(
          false,
          {{"--out", "DIR", "the run's folder (default: runs/ and the config's name)", &options->out},
           {"--overwrite", "", "replace the run that the folder holds", &options->overwrite},
           {"--resume", "DIR", "resume the run in this folder", &options->resume},
           {"--weights", "FILE", "start from the weights of a run, a checkpoint or a safetensors file",
            &options->weights},
           {"--pace", "N|key", "at most so many steps a second, or 'key': one for each Enter",
            &options->pace},
           {"--serve",
            "[PORT]",
            "show the page while it trains, on this machine only (port 8266, 0: any that is free); it stays "
            "until Ctrl-C",
            &options->serve,
            {.least = 0, .most = 65535, .without = "8266"}},
           {"--dry-run", "", "show parameters, memory and the time of a few steps; write nothing",
            &options->dry_run},
           {"--find-nan", "",
            "look at every operation of every step: names the first that gives NaN or infinity",
            [options] { options->config.sets.push_back("train.find_nan=true"); }},
           {"--quiet", "", "no progress and no tables", &options->quiet},
           {"--log-level",
            "LEVEL",
            "what is logged to stderr: info, warn (default) or error; log.txt has it from info on",
            &options->log_level,
            {.choices = {"info", "warn", "error"}}}}),
      .run = [options] { return train_run(*options); },
      .footer =
          "examples  train configs/toy.json --pace 20\n"
          "          train configs/toy.json --set train.steps=500 --set optimizer.lr=3e-3 --out runs/long\n"
          "          train --resume runs/long"};
}

}  // namespace handgrad::cli
