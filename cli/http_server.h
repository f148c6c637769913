// A small HTTP server for pages of this machine's own browser, over CivetWeb.
#pragma once

#include <signal.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

struct mg_connection;

namespace handgrad::cli {

/// A GET or HEAD, and where its answer goes.
class HttpRequest {
 public:
  /// For as long as the server is in the call that was made for it.
  explicit HttpRequest(mg_connection* connection) : connection_(connection) {}

  std::string_view path() const;  ///< "/events", without what follows a "?"
  bool is_head() const;           ///< only the head of the answer is wanted

  /// The whole answer; returns `status`.
  int answer(int status, const std::string& type, const std::string& body);
  /// The head of an answer without a length: it ends when the connection does. False when the client has gone.
  bool begin_stream(const std::string& type);
  /// More of a stream. False when the client has gone, or does not take it within five seconds.
  bool write(std::string_view text);

 private:
  friend class HttpServer;

  mg_connection* connection_;
  bool has_head_ = false;  // of the answer
};

/// Listens on 127.0.0.1 until it is destroyed. Only this machine is answered, and only pages that came from here: what
/// another site's page asks for, or under another name than 127.0.0.1 or localhost, gets 403. Its threads never get a
/// signal and leave others the greater part of a processor. At most one at a time is made in a process: meanwhile CivetWeb
/// changes what SIGPIPE does.
class HttpServer {
 public:
  /// Answers a request, and gives the status; called by many threads at once. When it throws, the status is 500.
  using Handler = std::function<int(HttpRequest&)>;

  /// `port` 0: any that is free. `threads`: so many requests are answered at once. Error when it cannot listen there.
  HttpServer(int port, int threads, Handler handler);
  ~HttpServer();

  int port() const;  ///< the one that was got
  /// Ends every connection, after waiting so long for answers that are being given. Handlers that wait for something must
  /// have been told to end.
  void stop(std::chrono::milliseconds patience);

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// From now on this thread yields to others: 0 as much as they to it, 19 takes only what they leave.
void set_niceness(int niceness);

/// Signals are for others: threads made while this lives never get one.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace handgrad::cli
