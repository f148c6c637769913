#include "handgrad/cli/live_server.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "handgrad/cli/http_server.h"
#include "handgrad/view/report.h"

namespace handgrad::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kThreads = 64, kMostViewers = 56;  // pages are served even with the most viewers
constexpr Clock::duration kStepInterval = 100ms, kPingInterval = 5s, kLeastRest = 400ms;
constexpr auto kGracePeriod = 2s;  // how long shutting down waits for answers being sent
constexpr int kRestFactor = 60;    // gathering takes at most 1/61 of one processor's time
constexpr int kNiceness = 19;      // of the gathering thread: training has priority

/// The data for all viewers, gathered at one moment.
struct Snapshot {
  std::int64_t number = 0, step = -1;
  Json data;
  std::string event;
};

/// The processor time of the calling thread; waiting for a processor does not count.
std::chrono::nanoseconds time_of_thread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::string event_text(const char* name, const std::string& data) {
  return std::string("event: ") + name + "\ndata: " + data + "\n\n";
}

std::shared_ptr<Snapshot> snapshot_of(std::int64_t step, Json data) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->step = step;
  snapshot->event = event_text("data", data.dump(-1, ' ', false, Json::error_handler_t::replace));
  snapshot->data = std::move(data);
  return snapshot;
}

}  // namespace

class LiveServer::State {
 public:
  explicit State(int port)
      : server_(port, kThreads, [this](HttpRequest& request) { return respond(request); }) {
    const SignalsBlocked blocked;
    gatherer_ = std::thread([this] { gather_repeatedly(); });
  }

  ~State() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      stop_gathering_ = true;
      changed_.notify_all();
    }
    server_.stop(kGracePeriod);
    gatherer_.join();
  }

  int port() const { return server_.port(); }

  void show(const std::filesystem::path& folder) {
    const std::lock_guard lock(mutex_);
    folder_ = folder;
    changed_.notify_all();
  }

  void stepped(std::int64_t step, double loss) {
    loss_.store(loss, std::memory_order_relaxed);
    step_.store(step, std::memory_order_release);
  }

  void finish(const Json& data) {
    const auto snapshot = data.is_null() ? nullptr : snapshot_of(step_, view::report_json({data}, true));
    const std::lock_guard lock(mutex_);
    if (snapshot) publish(snapshot);
    finished_ = true;
    stop_gathering_ = true;
    changed_.notify_all();
  }

 private:
  /// A viewer's connection; it counts as one of `viewers_` while it lives.
  class Connection {
   public:
    explicit Connection(State& state) : state_(state) {
      const std::lock_guard lock(state_.mutex_);
      number_ = ++state_.viewers_;
    }
    ~Connection() {
      const std::lock_guard lock(state_.mutex_);
      --state_.viewers_;
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    bool is_too_many() const { return number_ > kMostViewers; }

    // What was sent so far.
    std::int64_t number = 0, step = -1;
    Clock::time_point last_sent = Clock::now();

   private:
    State& state_;
    int number_;
  };

  /// Handles every request. Returns the status.
  int respond(HttpRequest& request) {
    if (request.path() == "/") return send_page(request);
    if (request.path() == "/events") return send_events(request);
    return request.answer(404, "text/plain", "");
  }

  // ---- Gathering

  void gather_repeatedly() {
    set_niceness(kNiceness);
    auto next = Clock::now();
    std::unique_lock lock(mutex_);
    while (!ending_ && !finished_) {
      changed_.wait_for(lock, 50ms);
      const bool wanted = asked_ || viewers_ > 0;
      const std::int64_t step = step_.load(std::memory_order_acquire);
      if (ending_ || finished_ || folder_.empty() || !wanted || Clock::now() < next) continue;
      if (newest_ && newest_->step == step) continue;
      lock.unlock();
      const auto start = time_of_thread();
      gather(step);
      next = Clock::now() + std::max<Clock::duration>(kLeastRest, kRestFactor * (time_of_thread() - start));
      lock.lock();
    }
  }

  void gather(std::int64_t step) {
    try {
      const auto snapshot = snapshot_of(
          step,
          view::report_json({view::report_data(folder_, {.running = true, .stop = &stop_gathering_})}, true));
      const std::lock_guard lock(mutex_);
      if (!finished_) publish(snapshot);
    } catch (const std::exception& error) {
      // A file of the run is being written: the next round tries again.
      const std::lock_guard lock(mutex_);
      if (!stop_gathering_) why_not_ = error.what();
    }
  }

  /// Under the lock.
  void publish(const std::shared_ptr<Snapshot>& snapshot) {
    snapshot->number = newest_ ? newest_->number + 1 : 1;
    newest_ = snapshot;
    asked_ = false;
    changed_.notify_all();
  }

  // ---- Answers

  int send_page(HttpRequest& request) {
    std::shared_ptr<const Snapshot> snapshot;
    std::string why_not = "the training has not begun yet";
    {
      std::unique_lock lock(mutex_);
      asked_ = true;
      changed_.notify_all();
      changed_.wait_for(lock, 10s, [&] { return newest_ != nullptr || ending_ || finished_; });
      snapshot = newest_;
      if (!why_not_.empty()) why_not = why_not_;
    }
    if (!snapshot) return request.answer(503, "text/plain", why_not + "; load this page again\n");
    return request.answer(200, "text/html; charset=utf-8", view::report_page(snapshot->data));
  }

  int send_events(HttpRequest& request) {
    if (request.is_head()) return request.answer(200, "text/event-stream", "");
    Connection connection(*this);
    if (connection.is_too_many()) return request.answer(503, "text/plain", "");
    if (!request.begin_stream("text/event-stream")) return 200;
    while (send_update(connection, request)) {
    }
    return 200;
  }

  /// Waits for something new and sends it; false ends the connection.
  bool send_update(Connection& connection, HttpRequest& request) {
    std::shared_ptr<const Snapshot> snapshot;
    bool finished = false;
    {
      std::unique_lock lock(mutex_);
      const auto updated = [&] {
        return ending_ || finished_ || (newest_ && newest_->number != connection.number);
      };
      changed_.wait_for(lock, kStepInterval, updated);
      if (ending_ && !finished_) return false;  // after finish(), the last events are still sent
      snapshot = newest_;
      finished = finished_;
    }
    std::string text;
    if (snapshot && snapshot->number != connection.number) {
      connection.number = snapshot->number;
      text = snapshot->event;
    }
    const std::int64_t step = step_.load(std::memory_order_acquire);
    if (step != connection.step && !finished) {
      connection.step = step;
      text +=
          event_text("step", Json{{"step", step}, {"loss", loss_.load(std::memory_order_relaxed)}}.dump());
    }
    if (finished) text += event_text("end", "{}");
    const auto now = Clock::now();
    if (text.empty() && now - connection.last_sent >= kPingInterval) text = ": still there\n\n";
    if (text.empty()) return true;
    connection.last_sent = now;
    return request.write(text) && !finished;
  }

  std::thread gatherer_;
  std::atomic<std::int64_t> step_{0};
  std::atomic<double> loss_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::filesystem::path folder_;
  std::shared_ptr<const Snapshot> newest_;
  std::string why_not_;  // why the last gathering failed
  int viewers_ = 0;
  std::atomic<bool> stop_gathering_{false};
  bool asked_ = false, ending_ = false, finished_ = false;

  HttpServer server_;  // last: its threads use the other members at once
};

LiveServer::LiveServer(int port) : state_(std::make_unique<State>(port)) {}
LiveServer::~LiveServer() = default;

std::string LiveServer::url() const { return "http://127.0.0.1:" + std::to_string(state_->port()) + "/"; }
void LiveServer::show(const std::filesystem::path& folder) { state_->show(folder); }
void LiveServer::stepped(std::int64_t step, double loss) { state_->stepped(step, loss); }
void LiveServer::finish(const nlohmann::ordered_json& data) { state_->finish(data); }

}  // namespace handgrad::cli
