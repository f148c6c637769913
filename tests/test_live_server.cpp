// The server of a running training's page: its threads, seen through sockets. The page in a browser: tests/browser.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "handgrad/cli/live_server.h"
#include "handgrad/core/error.h"
#include "handgrad/view/report.h"
#include "program.h"
#include "temporary_folder.h"

namespace {

using handgrad::cli::LiveServer;

/// A connection to the loopback address. Whatever is read of it ends within a minute.
class Socket {
 public:
  explicit Socket(const LiveServer& server) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval most{60, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_of(server));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Socket() { ::close(socket_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  static std::uint16_t port_of(const LiveServer& server) {
    const std::string url = server.url();
    return static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }

  void ask(const std::string& path, const std::string& host) const {
    const std::string text = "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
    REQUIRE(connected_);
    REQUIRE(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
  }
  /// What arrives up to `end`, or until the connection closes.
  std::string read(const std::string& end = "") const {
    std::string text;
    char bytes[4096];
    for (ssize_t count; (count = ::recv(socket_, bytes, sizeof bytes, 0)) > 0;) {
      text.append(bytes, static_cast<std::size_t>(count));
      if (!end.empty() && text.find(end) != std::string::npos) break;
    }
    return text;
  }

 private:
  int socket_;
  bool connected_ = false;
};

std::string host_of(const LiveServer& server) {
  return "127.0.0.1:" + std::to_string(Socket::port_of(server));
}

std::string answer(const LiveServer& server, const std::string& path, const std::string& host) {
  const Socket socket(server);
  socket.ask(path, host);
  return socket.read();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("live server: a port that is taken is an error that says which") {
  const LiveServer server(0);
  const int port = Socket::port_of(server);
  CHECK_THROWS_WITH_AS(LiveServer{port}, doctest::Contains(std::to_string(port).c_str()), handgrad::Error);
}

TEST_CASE("live server: pages for this machine's names only, events for every viewer until the end") {
  const TemporaryFolder folder;
  REQUIRE(handgrad_in(folder.path(), "train " + config_path("toy.json") +
                                         " --out run --quiet --set train.steps=3 --set train.batch_size=1")
              .status == 0);
  LiveServer server(0);
  const std::string host = host_of(server);
  CHECK(has(answer(server, "/", "example.org"), "403 Forbidden"));
  CHECK(has(answer(server, "/events", "127.0.0.1"), "403 Forbidden"));
  CHECK(has(answer(server, "/other", host), "404 Not Found"));
  server.show(folder.path() / "run");
  CHECK(has(answer(server, "/", host), "\"state\":\"running\""));
  std::atomic<int> reading{0};
  std::string seen[2];
  std::vector<std::thread> readers;
  const Socket sockets[2] = {Socket(server), Socket(server)};
  for (int i = 0; i < 2; ++i) {
    sockets[i].ask("/events", host);
    readers.emplace_back([&, i] {
      seen[i] = sockets[i].read("event: data");
      ++reading;
      seen[i] += sockets[i].read();
    });
  }
  std::thread trainer([&] {
    for (std::int64_t step = 1; step <= 1000; ++step) {
      server.stepped(step, 1.0 / static_cast<double>(step));
      if (step % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  trainer.join();
  for (int i = 0; i < 1200 && reading < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  server.finish(handgrad::view::report_data(folder.path() / "run", {}));
  for (std::thread& reader : readers) reader.join();
  for (const std::string& text : seen) {
    CHECK(has(text, "event: step\n"));
    CHECK(has(text, "\"state\":\"finished\""));
    CHECK(text.ends_with("event: end\ndata: {}\n\n"));
  }
  CHECK(has(answer(server, "/", host), "\"state\":\"finished\""));
}

TEST_CASE("live server: a run without data ends too, and so does a server that is looked at") {
  {
    LiveServer server(0);
    const Socket viewer(server);
    viewer.ask("/events", host_of(server));
    viewer.read("\r\n\r\n");
    server.finish(nullptr);
    CHECK(viewer.read().ends_with("event: end\ndata: {}\n\n"));
    CHECK(has(answer(server, "/", host_of(server)), "503 Service Unavailable"));
  }
  auto server = std::make_unique<LiveServer>(0);
  const Socket viewer(*server);
  viewer.ask("/events", host_of(*server));
  viewer.read("\r\n\r\n");
  server.reset();
  CHECK_FALSE(has(viewer.read(), "event: end"));
}
