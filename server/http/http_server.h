#ifndef SFMAMBA_SERVER_HTTP_HTTP_SERVER_H_
#define SFMAMBA_SERVER_HTTP_HTTP_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/fair_pool.h"
#include "server/base/listening_sockets.h"

namespace httplib {
class Server;
}

namespace sfmamba::http {

// Serves requests without bodies over HTTP/1, one for each connection. One
// thread reads and writes all connections and waits for none of them; another
// few make the answers. So clients that are slow, silent or many keep nobody
// from an answer: what is too slow or too large is ended, and when there are
// too many connections, the one that has said nothing useful for longest is.
//
// cpp-httplib parses requests and finds their handlers. Its own listener gives
// each connection a thread for as long as the client pleases.
class HttpServer {
 public:
  struct Options {
    std::string what = "the HTTP port";  // In errors.
    std::string host;
    int port = 0;  // 0: any free one.
    int max_connections = 256;
    // Of the request line and the headers, and the time for them to come.
    size_t max_head_bytes = 16 << 10;
    absl::Duration head_time = absl::Seconds(5);
    // For the client to take its answer.
    absl::Duration answer_time = absl::Seconds(10);
    int threads = 2;  // That make answers.
    // Called for each connection that is ended because there are too many. Must
    // not block.
    std::function<void()> refused = [] {};
  };

  // `add_handlers` is called once, before the first request. UNAVAILABLE,
  // naming the address, if it cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      Options options,
      const std::function<void(httplib::Server&)>& add_handlers);
  // Ends all connections.
  ~HttpServer();

  int port() const { return sockets_.port(); }

 private:
  class Router;
  enum class State { kReading, kAnswering, kWriting, kEnding };
  struct Connection {
    int fd;
    State state = State::kReading;
    absl::Time deadline;  // Of the state.
    std::string received;
    std::string answer;
    size_t sent = 0;
    size_t discarded = 0;  // Bytes that came after the request.
  };
  using Connections = std::map<uint64_t, Connection>;  // By order of arrival.

  HttpServer(Options options, server::ListeningSockets sockets,
             const std::function<void(httplib::Server&)>& add_handlers);

  void Loop();  // The body of thread_, which alone calls what follows.
  void Poll();
  void Accept(int listener);
  // Makes room for one more; false if there is none.
  bool EndOne();
  void TakeAnswers() ABSL_LOCKS_EXCLUDED(mu_);
  // Each does what can be done without waiting; false if the connection is
  // over.
  bool Continue(uint64_t id, Connection& connection);
  bool Read(uint64_t id, Connection& connection);
  bool Write(Connection& connection);
  bool End(Connection& connection);
  void StartAnswer(uint64_t id, const std::string& head);

  const Options options_;
  server::ListeningSockets sockets_;
  const std::unique_ptr<Router> router_;
  int wake_;  // An eventfd that ends Poll().

  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::pair<uint64_t, std::string>> answers_ ABSL_GUARDED_BY(mu_);

  // Used by thread_ only.
  Connections connections_;
  uint64_t accepted_ = 0;
  absl::Time accept_after_ = absl::InfinitePast();

  server::FairPool pool_;  // Uses router_ and answers_.
  std::thread thread_;     // Last: uses everything above.
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_HTTP_SERVER_H_
