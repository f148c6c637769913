// Runs that are interrupted, by Ctrl-C, by SIGTERM, by SIGKILL, and go on to the bytes of a run that was not.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "paths.h"
#include "program.h"
#include "temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The program at work, with what it prints in the files out and err of its folder.
class Child {
 public:
  Child(const fs::path& folder, const std::vector<std::string>& arguments) : folder_(folder) {
    std::vector<std::string> words{HANDGRAD_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string out = (folder / "out").string(), err = (folder / "err").string();
    pid_ = ::fork();
    if (pid_ != 0) return;
    const auto send = [](int to, const std::string& file, int flags) {
      ::dup2(::open(file.c_str(), flags, 0600), to);
    };
    send(STDIN_FILENO, "/dev/null", O_RDONLY);
    send(STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC);
    send(STDERR_FILENO, err, O_WRONLY | O_CREAT | O_TRUNC);
    ::unsetenv("HANDGRAD_CALLED_AS");
    if (::chdir(folder.c_str()) == 0) ::execv(HANDGRAD_PROGRAM, argv.data());
    ::_exit(127);
  }
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal) const { ::kill(pid_, signal); }
  /// Exit status; -signal when it was killed.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  bool has_ended() const {
    siginfo_t state{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &state, WEXITED | WNOHANG | WNOWAIT);
    return state.si_pid == pid_;
  }
  std::string err() const { return read_file(folder_ / "err"); }

 private:
  fs::path folder_;
  pid_t pid_ = -1;
};

/// Waits until `done`, some minutes at most.
bool wait_until(const std::function<bool()>& done) {
  const auto end = Clock::now() + 300s;
  while (Clock::now() < end) {
    if (done()) return true;
    std::this_thread::sleep_for(2ms);
  }
  return false;
}

std::size_t lines_in(const fs::path& file) {
  const std::string text = read_file(file);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

const char* const kFiles[] = {"metrics.jsonl", "recording.bin"};
const char* const kCheckpointFiles[] = {"model.safetensors", "optimizer.safetensors", "state.json"};

void check_equal_runs(const fs::path& a, const fs::path& b, const std::string& checkpoint) {
  for (const char* file : kFiles) CHECK_MESSAGE(read_file(a / file) == read_file(b / file), file);
  for (const char* file : kCheckpointFiles) {
    const fs::path name = fs::path("checkpoints") / checkpoint / file;
    REQUIRE(fs::exists(a / name));
    CHECK_MESSAGE(read_file(a / name) == read_file(b / name), file);
  }
}

const std::string kToy = HANDGRAD_SOURCE_DIR "/configs/toy.json";

/// Dropout, and windows in a shuffled order, so that a wrong place in the epoch would show.
std::vector<std::string> settings(const std::string& out, const std::string& threads) {
  return {"train",     kToy,
          "--out",     out,
          "--threads", threads,
          "--set",     "train.steps=12",
          "--set",     "model.drop_rate=0.2",
          "--set",     "data.sampling=sequential",
          "--set",     "data.shuffle=true"};
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("H89 Ctrl-C and SIGTERM finish the step and save, and the run goes on to the same bytes") {
  for (const char* threads : {"1", "2"}) {
    for (const int signal : {SIGINT, SIGTERM}) {
      CAPTURE(threads);
      CAPTURE(signal);
      const TemporaryFolder folder;
      REQUIRE(Child(folder.path(), settings("whole", threads)).wait() == 0);
      Child child(folder.path(), with(settings("parts", threads), {"--pace", "10"}));
      REQUIRE(wait_until([&] { return lines_in(folder.path() / "parts" / "metrics.jsonl") >= 3; }));
      child.send(signal);
      CHECK(child.wait() == 128 + signal);
      const std::string err = child.err();
      CHECK_MESSAGE(err.find("everything is saved in parts\n  resume: handgrad train --resume parts\n") !=
                        std::string::npos,
                    err);
      const std::size_t steps = lines_in(folder.path() / "parts" / "metrics.jsonl");
      CHECK(steps < 12);
      CHECK(Child(folder.path(), {"train", "--resume", "parts", "--threads", threads}).wait() == 0);
      check_equal_runs(folder.path() / "whole", folder.path() / "parts", "step-000012");
    }
  }
}

TEST_CASE("Ctrl-C before the first step leaves a run that can be resumed") {
  const TemporaryFolder folder;
  Child child(folder.path(), with(settings("parts", "1"), {"--pace", "0.01"}));
  REQUIRE(
      wait_until([&] { return read_file(folder.path() / "out").find("\n     0 ") != std::string::npos; }));
  child.send(SIGINT);
  CHECK(child.wait() == 130);
  CHECK(Child(folder.path(), {"train", "--resume", "parts"}).wait() == 0);
  REQUIRE(Child(folder.path(), settings("whole", "1")).wait() == 0);
  check_equal_runs(folder.path() / "whole", folder.path() / "parts", "step-000012");
}

TEST_CASE("a second Ctrl-C leaves at once, with the last checkpoint as it was") {
  const TemporaryFolder folder;
  // Steps of a quarter of a second or more; one checkpoint, after the first of them.
  REQUIRE(Child(folder.path(), {"train",
                                kToy,
                                "--out",
                                "run",
                                "--quiet",
                                "--threads",
                                "1",
                                "--set",
                                "train.stop_after=1",
                                "--set",
                                "model.emb_dim=192",
                                "--set",
                                "train.batch_size=48",
                                "--set",
                                "model.context_length=64",
                                "--set",
                                "model.n_layers=4",
                                "--set",
                                "data.val_fraction=0",
                                "--set",
                                "train.checkpoint_every=0"})
              .wait() == 0);
  const fs::path metrics = folder.path() / "run" / "metrics.jsonl";
  // The first Ctrl-C may arrive just before the end of a step, which then ends normally: try again.
  bool left_at_once = false;
  for (int attempt = 0; attempt < 5 && !left_at_once; ++attempt) {
    const std::size_t steps = lines_in(metrics);
    Child child(folder.path(), {"train", "--resume", "run", "--threads", "1"});
    REQUIRE(wait_until([&] { return lines_in(metrics) > steps; }));
    child.send(SIGINT);
    std::this_thread::sleep_for(5ms);
    child.send(SIGINT);
    const int status = child.wait();
    CHECK((status == 130 || status == -SIGINT));
    left_at_once = status == 130 && child.err().find("saved") == std::string::npos;
  }
  CHECK(left_at_once);
  CHECK(Child(folder.path(), {"train", "--resume", "run", "--set", "train.steps=3", "--quiet"}).wait() == 0);
}

const std::vector<std::string> kEndless = {"--quiet",     "--set", "train.steps=1000000", "--set",
                                           "schedule={}", "--set", "train.eval_every=0"};

TEST_CASE("a run that was killed before its first checkpoint can be looked at, and says how to begin again") {
  const TemporaryFolder folder;
  const fs::path metrics = folder.path() / "run" / "metrics.jsonl";
  Child child(folder.path(),
              with({"train", kToy, "--out", "run"}, with(kEndless, {"--set", "train.checkpoint_every=0"})));
  REQUIRE(wait_until([&] { return lines_in(metrics) >= 3 || child.has_ended(); }));
  child.send(SIGKILL);
  REQUIRE_MESSAGE(child.wait() == -SIGKILL, child.err());
  CHECK(handgrad_in(folder.path(), "inspect run --step last --format json").status == 0);
  CHECK(handgrad_in(folder.path(), "report run").status == 0);
  const Outcome outcome = handgrad_in(folder.path(), "train --resume run");
  CHECK(outcome.status == 1);
  CHECK(outcome.err ==
        "\"run\": has no checkpoint: the run ended before its first save\n"
        "  try: begin again: handgrad train run/config.json --overwrite --out run\n");
  CHECK(handgrad_in(folder.path(), "train run/config.json --overwrite --out run --quiet --set train.steps=3")
            .status == 0);
}

TEST_CASE(
    "the page of a failed training is served until Ctrl-C, and the exit status still says that it failed") {
  const TemporaryFolder folder;
  Child child(folder.path(), {"train", kToy, "--out", "run", "--quiet", "--serve", "0", "--set",
                              "optimizer={\"type\": \"sgd\", \"lr\": 1e30}", "--set", "train.grad_clip=0"});
  REQUIRE(
      wait_until([&] { return child.err().find("until Ctrl-C") != std::string::npos || child.has_ended(); }));
  CHECK_FALSE(child.has_ended());
  CHECK_MESSAGE(child.err().find("step 2 must be a finite number, got ") != std::string::npos, child.err());
  CHECK(child.err().find(": the page stays at http://127.0.0.1:") != std::string::npos);
  child.send(SIGINT);
  CHECK(child.wait() == 1);
}

TEST_CASE("twenty kills at random moments: after each the run can be inspected, reported and resumed") {
  const TemporaryFolder folder;
  const std::vector<std::string> endless = with(kEndless, {"--set", "train.checkpoint_every=1"});
  const fs::path checkpoints = folder.path() / "run" / "checkpoints";
  std::mt19937 random(2266);
  for (int kill = 0; kill < 20; ++kill) {
    CAPTURE(kill);
    const std::vector<std::string> begin = {"train", kToy, "--out", "run"},
                                   resume = {"train", "--resume", "run"};
    Child child(folder.path(), with(kill == 0 ? begin : resume, endless));
    const std::size_t steps = lines_in(folder.path() / "run" / "metrics.jsonl");
    // The first kill must wait until there is a step to resume from.
    REQUIRE(wait_until([&] {
      return (lines_in(folder.path() / "run" / "metrics.jsonl") > steps &&
              fs::exists(checkpoints / "step-000001" / "state.json")) ||
             child.has_ended();
    }));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100000));
    child.send(SIGKILL);
    REQUIRE_MESSAGE(child.wait() == -SIGKILL, child.err());
    const Outcome state = handgrad_in(folder.path(), "inspect run --step last --format json");
    CHECK(state.status == 0);
    const Outcome report =
        handgrad_in(folder.path(), "report run --out page" + std::to_string(kill) + ".html");
    CHECK_MESSAGE(report.status == 0, report.err);
    CHECK(read_file(folder.path() / ("page" + std::to_string(kill) + ".html")).ends_with("</html>\n"));
  }
  // The last resumed run makes the same steps as a run without interruptions.
  std::int64_t last = 0;
  for (const auto& entry : fs::directory_iterator(checkpoints))
    if (const std::string name = entry.path().filename().string(); name.starts_with("step-"))
      last = std::max<std::int64_t>(last, std::stoll(name.substr(5)));
  const std::string stop = "train.steps=" + std::to_string(last + 3);
  REQUIRE(Child(folder.path(), with({"train", "--resume", "run"}, with(endless, {"--set", stop}))).wait() ==
          0);
  REQUIRE(Child(folder.path(), with({"train", kToy, "--out", "whole"},
                                    with(endless, {"--set", stop, "--set", "train.checkpoint_every=0"})))
              .wait() == 0);
  CHECK(lines_in(folder.path() / "run" / "metrics.jsonl") == static_cast<std::size_t>(last + 3));
  for (const char* file : kFiles)
    CHECK_MESSAGE(read_file(folder.path() / "whole" / file) == read_file(folder.path() / "run" / file), file);
}
