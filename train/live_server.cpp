#include "handgrad/train/live_server.h"

#include <arpa/inet.h>
#include <civetweb.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "handgrad/core/error.h"
#include "handgrad/train/report.h"

namespace handgrad::train {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kThreads = 64, kMostViewers = 56;  // pages are served even when as many look on as may
constexpr Clock::duration kStepInterval = 100ms, kPingInterval = 5s, kLeastRest = 400ms;
constexpr Clock::duration kLastWords = 2s;  // the end waits so long for viewers that are being told something
constexpr const char* kTimeout = "5000";    // ms for a request to arrive, and for a viewer to take something
constexpr int kRestFactor = 20, kLowestPriority = 19;

/// Signals are for the thread that trains: threads made while this lives never get one.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// CivetWeb without TLS, which it would load at run time.
struct Library {
  Library() { mg_init_library(MG_FEATURES_DEFAULT); }
  ~Library() { mg_exit_library(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
};

/// What everybody is told, gathered at one moment.
struct Snapshot {
  std::int64_t number = 0, step = -1;
  Json data;
  std::string event;
};

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

std::string_view header(const mg_connection* connection, const char* name) {
  const char* value = mg_get_header(connection, name);
  return value ? value : std::string_view();
}

bool write(mg_connection* connection, std::string_view text) {
  return mg_write(connection, text.data(), text.size()) == static_cast<int>(text.size());
}

std::string head_text(mg_connection* connection, int status, const std::string& type) {
  return "HTTP/1.1 " + std::to_string(status) + " " + mg_get_response_code_text(connection, status) +
         "\r\n"
         "Cache-Control: no-store\r\n"
         "X-Frame-Options: DENY\r\n"
         "X-Content-Type-Options: nosniff\r\n"
         "Cross-Origin-Resource-Policy: same-origin\r\n"
         "Referrer-Policy: no-referrer\r\n"
         "Connection: close\r\n"
         "Content-Type: " +
         type + "\r\n";
}

bool is_head(const mg_connection* connection) {
  return std::string_view(mg_get_request_info(connection)->request_method) == "HEAD";
}

int answer(mg_connection* connection, int status, const std::string& type, const std::string& body) {
  std::string text =
      head_text(connection, status, type) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  if (!is_head(connection)) text += body;
  write(connection, text);
  return status;
}

/// Shuts every socket of this process whose own end is this port: who waits at one is woken. mg_stop() by itself has
/// its threads look up every two seconds only.
void shut_sockets(int port) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    int socket = -1;
    std::from_chars(name.data(), name.data() + name.size(), socket);
    sockaddr_in own{};
    socklen_t size = sizeof own;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) != 0) continue;
    if (own.sin_family == AF_INET && ntohs(own.sin_port) == port) ::shutdown(socket, SHUT_RDWR);
  }
}

}  // namespace

class LiveServer::State {
 public:
  explicit State(int port) {
    const SignalsBlocked blocked;
    serve(port);
    if (!server_)
      throw Error("train", "--serve cannot listen on port " + std::to_string(port), {},
                  "another port, or --serve 0 for any that is free");
    mg_server_port listens{};
    mg_get_server_ports(server_, 1, &listens);
    port_.store(listens.port);
    gatherer_ = std::thread([this] { gather_again_and_again(); });
  }

  ~State() {
    {
      std::unique_lock lock(mutex_);
      ending_ = true;
      changed_.notify_all();
      // Once mg_stop() has begun nothing more is sent.
      changed_.wait_for(lock, kLastWords, [&] { return answering_ == 0; });
    }
    shut_sockets(port_);
    mg_stop(server_);
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

  void finish(const Json& data) {
    const auto snapshot = data.is_null() ? nullptr : snapshot_of(step_, report_json({data}, true));
    const std::lock_guard lock(mutex_);
    if (snapshot) publish(snapshot);
    finished_ = true;
    changed_.notify_all();
  }

 private:
  /// One more while it lives.
  class Counted {
   public:
    Counted(State& state, int& counter) : state_(state), counter_(counter) {
      const std::lock_guard lock(state_.mutex_);
      count_ = ++counter_;
    }
    ~Counted() {
      const std::lock_guard lock(state_.mutex_);
      --counter_;
      state_.changed_.notify_all();
    }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    int count() const { return count_; }

   private:
    State& state_;
    int& counter_;
    int count_;
  };

  // ---- The server

  void serve(int port) {
    mg_callbacks callbacks{};
    callbacks.begin_request = [](mg_connection* connection) {
      return static_cast<State*>(mg_get_request_info(connection)->user_data)->respond(connection);
    };
    callbacks.log_message = [](const mg_connection*, const char*) { return 1; };  // not to stderr
    callbacks.init_thread = [](const mg_context* context, int) -> void* {
      State& state = *static_cast<State*>(mg_get_user_data(context));
      const std::lock_guard lock(state.mutex_);
      ++state.threads_;
      state.changed_.notify_all();
      return nullptr;
    };
    const std::string address = "127.0.0.1:" + std::to_string(port), threads = std::to_string(kThreads);
    const char* options[] = {
        "listening_ports", address.c_str(), "num_threads", threads.c_str(), "request_timeout_ms",
        kTimeout,          "tcp_nodelay",   "1",           nullptr,
    };
    // Each of its threads begins by ignoring SIGPIPE, for all of the process. They write without that signal, so
    // what the program wants of it is put back when they have all begun.
    struct sigaction on_closed_pipe {};
    ::sigaction(SIGPIPE, nullptr, &on_closed_pipe);
    server_ = mg_start(&callbacks, this, options);
    if (!server_) return;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 5s, [&] { return threads_ > kThreads; });  // and the one that listens
    ::sigaction(SIGPIPE, &on_closed_pipe, nullptr);
  }

  /// Every request comes here. Gives the status.
  int respond(mg_connection* connection) {
    const Counted counted(*this, answering_);
    try {
      return route(connection);
    } catch (const std::exception&) {
      write(connection, "HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\n\r\n");
      return 500;
    }
  }

  int route(mg_connection* connection) {
    const mg_request_info& request = *mg_get_request_info(connection);
    if (!allowed(connection))
      return answer(connection, 403, "text/plain", "only for pages of this address\n");
    const std::string_view method = request.request_method, path = request.local_uri;
    if (method == "GET" || method == "HEAD") {
      if (path == "/") return send_page(connection);
      if (path == "/events") return send_events(connection);
    }
    return answer(connection, 404, "text/plain", "");
  }

  bool allowed(const mg_connection* connection) const {
    const std::string port = port_ == 80 ? "" : ":" + std::to_string(port_);  // as browsers write it
    std::string host(header(connection, "Host"));
    if (port_ == 80 && host.ends_with(":80")) host.resize(host.size() - 3);
    if (host != "127.0.0.1" + port && host != "localhost" + port) return false;
    if (mg_get_header(connection, "Origin") && header(connection, "Origin") != "http://" + host) return false;
    return header(connection, "Sec-Fetch-Site") != "cross-site" ||
           header(connection, "Sec-Fetch-Mode") == "navigate";
  }

  // ---- Gathering

  void gather_again_and_again() {
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
      const auto snapshot = snapshot_of(step, report_json({report_data(folder_, {.running = true})}, true));
      const std::lock_guard lock(mutex_);
      if (!finished_) publish(snapshot);
    } catch (const std::exception& error) {
      // A file of the run is just being made: there will be another time.
      const std::lock_guard lock(mutex_);
      why_not_ = error.what();
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

  int send_page(mg_connection* connection) {
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
    if (!snapshot) return answer(connection, 503, "text/plain", why_not + "; load this page again\n");
    return answer(connection, 200, "text/html; charset=utf-8", report_page(snapshot->data));
  }

  /// What a viewer has been told so far.
  struct Viewer {
    std::int64_t number = 0, step = -1;
    Clock::time_point spoken = Clock::now();
  };

  int send_events(mg_connection* connection) {
    if (is_head(connection)) return answer(connection, 200, "text/event-stream", "");
    const Counted counted(*this, viewers_);
    if (counted.count() > kMostViewers) return answer(connection, 503, "text/plain", "");
    // No length: it ends when the connection does.
    if (!write(connection, head_text(connection, 200, "text/event-stream") + "\r\n")) return 200;
    Viewer viewer;
    while (tell(viewer, connection)) {
    }
    return 200;
  }

  /// Waits for something new and sends it; false ends the connection.
  bool tell(Viewer& viewer, mg_connection* connection) {
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
    return write(connection, text) && !finished;
  }

  Library library_;
  mg_context* server_ = nullptr;
  std::atomic<int> port_{-1};
  std::thread gatherer_;
  std::atomic<std::int64_t> step_{0};
  std::atomic<double> loss_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::filesystem::path folder_;
  std::shared_ptr<const Snapshot> newest_;
  std::string why_not_;  // what went wrong when it was last gathered
  int threads_ = 0, answering_ = 0, viewers_ = 0;
  bool asked_ = false, ending_ = false, finished_ = false;
};

LiveServer::LiveServer(int port) : state_(std::make_unique<State>(port)) {}
LiveServer::~LiveServer() = default;

std::string LiveServer::url() const { return "http://127.0.0.1:" + std::to_string(state_->port()) + "/"; }
void LiveServer::begin(const std::filesystem::path& folder) { state_->begin(folder); }
void LiveServer::stepped(std::int64_t step, double loss) { state_->stepped(step, loss); }
void LiveServer::finish(const nlohmann::ordered_json& data) { state_->finish(data); }

}  // namespace handgrad::train
