#include "handgrad/train/run_folder.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "handgrad/core/error.h"
#include "handgrad/core/kernels/targets.h"
#include "handgrad/core/parallel.h"
#include "handgrad/io/files.h"
#include "handgrad/io/json_text.h"
#include "handgrad/io/program_name.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/metrics.h"
#include "handgrad/train/recording.h"
#include "handgrad/train/step_lines.h"
#include "handgrad/train/version.h"

namespace handgrad::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kReplaced = "replaced";
constexpr std::array kOlder = {"inspect.bin", "statistics.bin",
                               "texts.jsonl"};  // of versions before recording.bin
constexpr std::array kOurs = {"config.json", "meta.json", kMetricsFile,  kTimingFile,   kRecordingFile,
                              kSamplesFile,  "log.txt",   "checkpoints", "report.html", kReplaced};

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw_cannot_write(path, error.message());
}

/// Whether it is a file of a run, or one left unfinished by a kill.
bool is_ours(const fs::path& entry) {
  std::string name = entry.filename().string();
  if (name.ends_with(io::kUnfinished)) name.resize(name.size() - std::strlen(io::kUnfinished));
  const auto is_name = [&](const char* known) { return name == known; };
  return std::any_of(kOurs.begin(), kOurs.end(), is_name) ||
         std::any_of(kOlder.begin(), kOlder.end(), is_name);
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

}  // namespace

/// Moves the files of a run into a subfolder, and restores them unless discard() is called.
class RunFolder::Backup {
 public:
  Backup(fs::path path, bool is_new) : path_(std::move(path)), is_new_(is_new) {
    restore(path_);  // the program may have been killed between two renames
    if (is_new_) return;
    make_folder(path_ / kReplaced);
    for_ours(path_, [&](const fs::path& file) { rename(file, path_ / kReplaced / file.filename()); });
  }
  ~Backup() {
    if (discarded_) return;
    try {
      for_ours(path_, [](const fs::path& file) { fs::remove_all(file); });
      restore(path_);
      std::error_code ignored;
      if (is_new_) fs::remove(path_, ignored);  // only if it is empty
    } catch (const std::exception&) {  // the files stay in the subfolder, and the next call restores them
    }
  }
  Backup(const Backup&) = delete;
  Backup& operator=(const Backup&) = delete;

  void discard() {
    discarded_ = true;
    std::error_code ignored;
    fs::remove_all(path_ / kReplaced, ignored);
  }

  /// Recovers from a killed program: restores the run it was replacing, unless the new one has a checkpoint.
  static void restore(const fs::path& path) {
    const fs::path aside = path / kReplaced;
    if (!fs::is_directory(aside)) return;
    if (find_latest(path)) {  // the new run has a checkpoint: only deleting the old one is left to do
      fs::remove_all(aside);
      return;
    }
    for_ours(aside, [&](const fs::path& file) {
      fs::remove_all(path / file.filename());
      rename(file, path / file.filename());
    });
    fs::remove_all(aside);
  }

 private:
  template <class Visit>
  static void for_ours(const fs::path& folder, const Visit& visit) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder))
      if (is_ours(entry.path()) && entry.path().filename() != kReplaced) files.push_back(entry.path());
    for (const fs::path& file : files) visit(file);
  }
  static void rename(const fs::path& from, const fs::path& to) {
    std::error_code error;
    fs::rename(from, to, error);
    if (error) throw_cannot_write(to, error.message());
  }

  fs::path path_;
  bool is_new_, discarded_ = false;
};

std::string run_name(const fs::path& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

void reject_older_run(const fs::path& folder) {
  std::vector<std::string> found;
  for (const char* name : kOlder)
    if (fs::exists(folder / name)) found.emplace_back(name);
  if (!found.empty())
    throw Error(io::quoted(folder),
                fmt::format("an older handgrad wrote this run: it has {}", fmt::join(found, " and ")), {},
                "train again, or use that older version");
}

RunFolder RunFolder::create(const fs::path& path, Existing existing) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path))
    throw Error("train", fmt::format("`out` '{}' is a file; a run needs a folder", path.string()));
  bool begun = false;
  if (fs::is_directory(path, error)) {
    for (const auto& entry : fs::directory_iterator(path)) {
      if (!is_ours(entry.path()))
        throw Error("train",
                    fmt::format("`out` '{}' holds something that is not part of a run: {}", path.string(),
                                entry.path().filename().string()),
                    {}, "another folder: `out` runs/NAME");
    }
  }
  // An interrupted start leaves a log, perhaps part of a config, and nothing worth keeping.
  for (const char* file : {"config.json", kMetricsFile, "checkpoints", kReplaced})
    begun = begun || fs::exists(path / file);
  if (begun && existing == Existing::reject)
    throw Error("train", fmt::format("'{}' already holds a run", path.string()), {},
                fmt::format("`overwrite`, or another folder: `out` runs/NAME, or resume it: `resume` {}",
                            io::shell_word(path.string())));
  const bool is_new = !fs::exists(path);
  make_folder(path);
  RunFolder folder(path);
  folder.backup_ = std::make_shared<Backup>(path, is_new);
  return folder;
}

void RunFolder::keep() {
  if (!backup_) return;
  backup_->discard();
  backup_.reset();
}

void RunFolder::Lock::take(const fs::path& path) {
  std::error_code ignored;
  if (folder_ >= 0 || !fs::is_directory(path, ignored)) return;
  folder_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0 || ::flock(folder_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(folder_);
  folder_ = -1;
  throw Error("train", fmt::format("another process is training in '{}'", path.string()), {},
              "another folder: `out` runs/NAME");
}

RunFolder::Lock::~Lock() {
  if (folder_ >= 0) ::close(folder_);
}

void RunFolder::recover(const fs::path& path) { Backup::restore(path); }

RunFolder RunFolder::open(const fs::path& path, const char* verb) {
  if (!fs::is_regular_file(path / "config.json"))
    throw Error(
        verb,
        fmt::format("'{}' {}", path.string(),
                    fs::exists(path) ? "holds no run: there is no config.json in it" : "does not exist"),
        {}, "the folder that `out` named, such as runs/toy");
  reject_older_run(path);
  return RunFolder(path);
}

bool RunFolder::in_use(const fs::path& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  const bool taken = ::flock(folder, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(folder);
  return taken;
}

fs::path RunFolder::recording() const { return path_ / kRecordingFile; }

void RunFolder::write_config(const Json& effective) const {
  io::replace_file(path_ / "config.json", effective.dump(2) + "\n");
}

void RunFolder::write_meta(const Json& meta) const {
  io::replace_file(path_ / "meta.json", meta.dump(2) + "\n");
}

Json run_meta(std::uint64_t seed) {
  return {{"handgrad", kVersion},
          {"revision", kRevision},
          {"compiler", kCompiler},
          {"build", kBuildType},
          {"cpu", cpu_name()},
          {"kernels", kernels::target_name()},
          {"threads", thread_count()},
          {"seed", seed},
          {"started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))}};
}

}  // namespace handgrad::train
