#include "handgrad/train/live_server.h"

#include <httplib.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "handgrad/core/error.h"
#include "handgrad/train/report.h"

namespace handgrad::train {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kThreads = 64, kMostViewers = 56;  // pages are served even when as many look on as may
constexpr Clock::duration kStepInterval = 100ms, kPingInterval = 5s, kLeastRest = 400ms;
constexpr int kRestFactor = 20, kLowestPriority = 19;

/// Signals are for the thread that trains. A viewer that goes away while it is written to raises SIGPIPE in the thread
/// that writes; blocked, it is an error of that write and nothing more.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

/// What everybody is told, gathered at one moment.
struct Snapshot {
  std::int64_t number = 0, step = -1;
  Json data;
  std::string event;
};

std::string event_text(const char* name, const std::string& data) {
  return std::string("event: ") + name + "\ndata: " + data + "\n\n";
}

}  // namespace

class LiveServer::State {
 public:
  explicit State(int port) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_keep_alive_max_count(1);
    server_.set_default_headers({{"Cache-Control", "no-store"},
                                 {"X-Frame-Options", "DENY"},
                                 {"X-Content-Type-Options", "nosniff"},
                                 {"Cross-Origin-Resource-Policy", "same-origin"},
                                 {"Referrer-Policy", "no-referrer"}});
    server_.set_pre_routing_handler([this](const auto& request, auto& response) {
      if (allowed(request)) return httplib::Server::HandlerResponse::Unhandled;
      response.status = 403;
      response.set_content("only for pages of this address\n", "text/plain");
      return httplib::Server::HandlerResponse::Handled;
    });
    server_.Get("/", [this](const auto&, auto& response) { send_page(response); });
    server_.Get("/events", [this](const auto&, auto& response) { send_events(response); });
    // Without these two options a second program could listen on the port of the first.
    server_.set_socket_options([](int socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    port_ = port == 0                                 ? server_.bind_to_any_port("127.0.0.1")
            : server_.bind_to_port("127.0.0.1", port) ? port
                                                      : -1;
    if (port_ < 0)
      throw Error("train", "--serve cannot listen on port " + std::to_string(port), {},
                  "another port, or --serve 0 for any that is free");
    listener_ = std::thread([this] {
      block_signals();
      server_.listen_after_bind();
    });
    gatherer_ = std::thread([this] { gather_again_and_again(); });
    while (!server_.is_running()) std::this_thread::sleep_for(1ms);  // stop() is heard from then on
  }

  ~State() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    server_.stop();
    listener_.join();
    gatherer_.join();
  }

  int port() const { return port_; }

  void begin(const std::filesystem::path& folder) {
    const std::lock_guard lock(mutex_);
    folder_ = folder;
    changed_.notify_all();
  }

  void stepped(std::int64_t step, double loss) {
    loss_.store(loss, std::memory_order_relaxed);
    step_.store(step, std::memory_order_release);
  }

  void finish(const Run& run) {
    Json data = report_json({report_data(folder_, {.run = &run})}, true);
    publish(run.trainer().step_count(), std::move(data));
    const std::lock_guard lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }

 private:
  // ---- Who may ask

  bool allowed(const httplib::Request& request) const {
    const std::string port = ":" + std::to_string(port_), host = request.get_header_value("Host");
    if (host != "127.0.0.1" + port && host != "localhost" + port) return false;
    if (request.has_header("Origin") && request.get_header_value("Origin") != "http://" + host) return false;
    const std::string site = request.get_header_value("Sec-Fetch-Site");
    return site != "cross-site" || request.get_header_value("Sec-Fetch-Mode") == "navigate";
  }

  // ---- Gathering

  void gather_again_and_again() {
    block_signals();
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowestPriority);
    auto next = Clock::now();
    std::unique_lock lock(mutex_);
    while (!ending_ && !finished_) {
      changed_.wait_for(lock, 50ms);
      const bool wanted = asked_ || viewers_ > 0;
      const std::int64_t step = step_.load(std::memory_order_acquire);
      if (ending_ || finished_ || folder_.empty() || !wanted || Clock::now() < next) continue;
      if (newest_ && newest_->step == step) continue;
      lock.unlock();
      const auto start = Clock::now();
      gather(step);
      next = Clock::now() + std::max<Clock::duration>(kLeastRest, kRestFactor * (Clock::now() - start));
      lock.lock();
    }
  }

  void gather(std::int64_t step) {
    try {
      publish(step, report_json({report_data(folder_, {.running = true})}, true));
    } catch (const std::exception&) {
      // A file of the run is just being made: there will be another time.
    }
  }

  void publish(std::int64_t step, Json data) {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->step = step;
    snapshot->event = event_text("data", data.dump(-1, ' ', false, Json::error_handler_t::replace));
    snapshot->data = std::move(data);
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    snapshot->number = newest_ ? newest_->number + 1 : 1;
    newest_ = std::move(snapshot);
    asked_ = false;
    changed_.notify_all();
  }

  // ---- Answers

  void send_page(httplib::Response& response) {
    std::shared_ptr<const Snapshot> snapshot;
    {
      std::unique_lock lock(mutex_);
      asked_ = true;
      changed_.notify_all();
      changed_.wait_for(lock, 10s, [&] { return newest_ != nullptr || ending_; });
      snapshot = newest_;
    }
    if (!snapshot) {
      response.status = 503;
      response.set_content("the training has not begun yet; load this page again\n", "text/plain");
      return;
    }
    response.set_content(report_page(snapshot->data), "text/html; charset=utf-8");
  }

  /// What a viewer has been told so far.
  struct Viewer {
    std::int64_t number = 0, step = -1;
    Clock::time_point spoken = Clock::now();
  };

  void send_events(httplib::Response& response) {
    {
      const std::lock_guard lock(mutex_);
      if (viewers_ >= kMostViewers) {
        response.status = 503;
        return;
      }
      ++viewers_;
    }
    auto viewer = std::make_shared<Viewer>();
    response.set_chunked_content_provider(
        "text/event-stream",
        [this, viewer](std::size_t, httplib::DataSink& sink) { return tell(*viewer, sink); },
        [this](bool) {
          const std::lock_guard lock(mutex_);
          --viewers_;
        });
  }

  /// Waits for something new and sends it; false ends the connection.
  bool tell(Viewer& viewer, httplib::DataSink& sink) {
    std::shared_ptr<const Snapshot> snapshot;
    bool finished = false;
    {
      std::unique_lock lock(mutex_);
      const auto news = [&] { return ending_ || finished_ || (newest_ && newest_->number != viewer.number); };
      changed_.wait_for(lock, kStepInterval, news);
      if (ending_ && !finished_) return false;  // what has finished is told to the end
      snapshot = newest_;
      finished = finished_;
    }
    std::string text;
    if (snapshot && snapshot->number != viewer.number) {
      viewer.number = snapshot->number;
      text = snapshot->event;
    }
    const std::int64_t step = step_.load(std::memory_order_acquire);
    if (step != viewer.step && !finished) {
      viewer.step = step;
      text +=
          event_text("step", Json{{"step", step}, {"loss", loss_.load(std::memory_order_relaxed)}}.dump());
    }
    if (finished) text += event_text("end", "{}");
    const auto now = Clock::now();
    if (text.empty() && now - viewer.spoken >= kPingInterval) text = ": still there\n\n";
    if (text.empty()) return true;
    viewer.spoken = now;
    if (!sink.write(text.data(), text.size())) return false;
    if (finished) sink.done();
    return true;
  }

  httplib::Server server_;
  int port_ = -1;
  std::thread listener_, gatherer_;
  std::atomic<std::int64_t> step_{0};
  std::atomic<double> loss_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::filesystem::path folder_;
  std::shared_ptr<const Snapshot> newest_;
  std::size_t viewers_ = 0;
  bool asked_ = false, ending_ = false, finished_ = false;
};

LiveServer::LiveServer(int port) : state_(std::make_unique<State>(port)) {}
LiveServer::~LiveServer() = default;

std::string LiveServer::url() const { return "http://127.0.0.1:" + std::to_string(state_->port()) + "/"; }
void LiveServer::begin(const std::filesystem::path& folder) { state_->begin(folder); }
void LiveServer::stepped(std::int64_t step, double loss) { state_->stepped(step, loss); }
void LiveServer::finish(const Run& run) { state_->finish(run); }

}  // namespace handgrad::train
