#ifndef SFMAMBA_SERVER_HTTP_HTTP_SERVER_H_
#define SFMAMBA_SERVER_HTTP_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/fair_pool.h"
#include "server/base/listening_sockets.h"
#include "server/base/steady_cond_var.h"
#include "server/http/connection.h"
#include "server/http/exchange.h"
#include "server/http/http_options.h"
#include "server/http/mailbox.h"
#include "server/http/room.h"

namespace sfmamba::http {

// Serves HTTP/1 at a port, in clear or through TLS. One thread reads and writes
// all connections and waits for none of them; another few call the handler with
// each request that has come whole. So clients that are slow, silent or many
// keep nobody from an answer: what is too slow or too large is ended, and when
// there are too many connections, the one that has done nothing useful for
// longest is.
//
// A connection's requests are answered one after another, and no more of it is
// read until an answer is sent. A client that closes its side of the connection
// counts as gone: its request is cancelled. The answer is still sent if the
// other side takes it.
//
// Thread-safe.
class HttpServer {
 public:
  // Is called by several threads at a time. A request whose client has gone
  // before this is called is dropped. An exchange that is destroyed without an
  // answer is answered with 500: so is one whose handler throws.
  using Handler = std::function<void(std::unique_ptr<Exchange>)>;

  // UNAVAILABLE, naming the address, if it cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpOptions options,
                                                           Handler handler);
  // Ends all connections; requests that wait are cancelled. Returns once the
  // handler returns. Exchanges may live on, and be answered in vain.
  ~HttpServer();

  // Refuses new connections, ends the idle ones, and the others after their
  // next answer. Returns once all that was asked is answered and sent, true,
  // or after `limit`, false.
  bool Drain(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);

  int port() const { return sockets_.port(); }
  // Of bodies and answers.
  int64_t held_bytes() const { return room_->held(); }

 private:
  struct Entry {
    std::unique_ptr<Connection> connection;
    uint32_t events;  // That epoll looks for.
    absl::Time deadline;
  };
  using Connections = absl::flat_hash_map<uint64_t, Entry>;  // By number.

  HttpServer(HttpOptions options, server::ListeningSockets sockets,
             Handler handler);

  void Loop();  // The body of thread_, which alone calls what follows.
  void Wait();
  void Listen(bool accepts);  // Or not, for a while.
  void Accept(int listener);
  void Add(int fd);
  // Makes room for one more; false if there is none.
  bool EndOne();
  void TakeAnswers();
  void EndLate();
  // Ends what is idle; says so once nothing is left to be sent.
  void GoOnDraining() ABSL_LOCKS_EXCLUDED(mu_);
  // Does `work` with a connection and looks for what it waits for next. `work`
  // returns false once the connection is over.
  template <typename Work>
  void With(Connections::iterator found, Work work);
  void End(Connections::iterator found);
  void CallHandler(std::shared_ptr<Call> call, HttpRequest request);

  const HttpOptions options_;
  server::ListeningSockets sockets_;
  const Handler handler_;
  const int epoll_;
  const std::shared_ptr<Mailbox> mailbox_;
  const std::shared_ptr<Room> room_;

  absl::Mutex mu_;
  server::SteadyCondVar drained_now_;  // Signalled when drained_ changes.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  bool drained_ ABSL_GUARDED_BY(mu_) = false;

  // Used by thread_ only.
  Connection::Environment environment_;
  Connections connections_;
  std::set<std::pair<absl::Time, uint64_t>> deadlines_;
  uint64_t accepted_ = 0;
  bool listens_ = false;
  absl::Time accept_after_ = absl::InfinitePast();

  server::FairPool pool_;  // Calls handler_.
  std::thread thread_;     // Last: uses everything above.
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_HTTP_SERVER_H_
