#include "handgrad/cli/http_server.h"

#include <arpa/inet.h>
#include <civetweb.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "handgrad/core/error.h"

namespace handgrad::cli {
namespace {

using namespace std::chrono_literals;

constexpr const char* kTimeout = "5000";  // ms for a request to arrive, and for a reader to take something
constexpr int kNiceness = 5;              // a page is sent soon, also when all processors are busy

/// CivetWeb without TLS, which it would load at run time.
struct Library {
  Library() { mg_init_library(MG_FEATURES_DEFAULT); }
  ~Library() { mg_exit_library(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
};

std::string_view header(const mg_connection* connection, const char* name) {
  const char* value = mg_get_header(connection, name);
  return value ? value : std::string_view();
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

// ---- A request

std::string_view HttpRequest::path() const { return mg_get_request_info(connection_)->local_uri; }

bool HttpRequest::is_head() const {
  return std::string_view(mg_get_request_info(connection_)->request_method) == "HEAD";
}

bool HttpRequest::write(std::string_view text) {
  return mg_write(connection_, text.data(), text.size()) == static_cast<int>(text.size());
}

int HttpRequest::answer(int status, const std::string& type, const std::string& body) {
  std::string text =
      head_text(connection_, status, type) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  if (!is_head()) text += body;
  has_head_ = true;
  write(text);
  return status;
}

bool HttpRequest::begin_stream(const std::string& type) {
  has_head_ = true;
  return write(head_text(connection_, 200, type) + "\r\n");
}

// ---- The server

class HttpServer::State {
 public:
  State(int port, int threads, Handler handler) : handler_(std::move(handler)), wanted_threads_(threads) {
    const SignalsBlocked blocked;
    start(port);
    if (!server_)
      throw Error("train", "--serve cannot listen on port " + std::to_string(port), {},
                  "another port, or --serve 0 for any that is free");
  }

  int port() const { return port_; }

  void stop(std::chrono::milliseconds patience) {
    if (!server_) return;
    {
      // Once mg_stop() has begun nothing more is sent.
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, patience, [&] { return answering_ == 0; });
    }
    shut_sockets(port_);
    mg_stop(server_);
    server_ = nullptr;
  }

 private:
  void start(int port) {
    mg_callbacks callbacks{};
    callbacks.begin_request = [](mg_connection* connection) {
      return static_cast<State*>(mg_get_request_info(connection)->user_data)->respond(connection);
    };
    callbacks.log_message = [](const mg_connection*, const char*) { return 1; };  // not to stderr
    callbacks.init_thread = [](const mg_context* context, int) -> void* {
      State& state = *static_cast<State*>(mg_get_user_data(context));
      {
        const std::lock_guard lock(state.mutex_);
        ++state.threads_;
        state.changed_.notify_all();
      }
      set_niceness(kNiceness);
      return nullptr;
    };
    const std::string address = "127.0.0.1:" + std::to_string(port),
                      threads = std::to_string(wanted_threads_);
    const char* options[] = {
        "listening_ports", address.c_str(), "num_threads", threads.c_str(), "request_timeout_ms",
        kTimeout,          "tcp_nodelay",   "1",           nullptr,
    };
    // Each of its threads begins by ignoring SIGPIPE, for all of the process. They write without that signal, so
    // the program's setting is restored when they have all begun.
    struct sigaction on_closed_pipe {};
    ::sigaction(SIGPIPE, nullptr, &on_closed_pipe);
    if (port != 0) port_.store(port);  // requests may arrive at once
    server_ = mg_start(&callbacks, this, options);
    if (!server_) return;
    mg_server_port listens{};
    mg_get_server_ports(server_, 1, &listens);
    port_.store(listens.port);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 5s, [&] { return threads_ > wanted_threads_; });  // and the one that listens
    ::sigaction(SIGPIPE, &on_closed_pipe, nullptr);
  }

  /// Handles every request. Returns the status.
  int respond(mg_connection* connection) {
    const Answering answering(*this);
    HttpRequest request(connection);
    int status = 500;
    try {
      const std::string_view method = mg_get_request_info(connection)->request_method;
      if (!allowed(connection)) {
        status = request.answer(403, "text/plain", "only for pages of this address\n");
      } else if (method != "GET" && method != "HEAD") {
        status = request.answer(404, "text/plain", "");
      } else {
        status = handler_(request);
      }
    } catch (...) {  // what comes from here goes through C
      if (!request.has_head_) request.answer(500, "text/plain", "");
    }
    return status;
  }

  /// One more while it lives.
  class Answering {
   public:
    explicit Answering(State& state) : state_(state) { count(1); }
    ~Answering() { count(-1); }
    Answering(const Answering&) = delete;
    Answering& operator=(const Answering&) = delete;

   private:
    void count(int more) {
      const std::lock_guard lock(state_.mutex_);
      state_.answering_ += more;
      state_.changed_.notify_all();
    }

    State& state_;
  };

  bool allowed(const mg_connection* connection) const {
    const std::string port = port_ == 80 ? "" : ":" + std::to_string(port_);  // as browsers write it
    std::string host(header(connection, "Host"));
    if (port_ == 80 && host.ends_with(":80")) host.resize(host.size() - 3);
    if (host != "127.0.0.1" + port && host != "localhost" + port) return false;
    if (mg_get_header(connection, "Origin") && header(connection, "Origin") != "http://" + host) return false;
    return header(connection, "Sec-Fetch-Site") != "cross-site" ||
           header(connection, "Sec-Fetch-Mode") == "navigate";
  }

  Library library_;
  Handler handler_;
  mg_context* server_ = nullptr;
  std::atomic<int> port_{-1};

  std::mutex mutex_;
  std::condition_variable changed_;
  int wanted_threads_, threads_ = 0, answering_ = 0;
};

HttpServer::HttpServer(int port, int threads, Handler handler)
    : state_(std::make_unique<State>(port, threads, std::move(handler))) {}
HttpServer::~HttpServer() { stop(0ms); }

int HttpServer::port() const { return state_->port(); }
void HttpServer::stop(std::chrono::milliseconds patience) { state_->stop(patience); }

// ---- Threads

void set_niceness(int niceness) { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), niceness); }

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace handgrad::cli
