#ifndef SFMAMBA_SERVER_HTTP_HTTP_SERVER_H_
#define SFMAMBA_SERVER_HTTP_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/exchange.h"
#include "server/http/http_options.h"

namespace sfmamba::http {

// Serves HTTP/1 at a port, in clear or through TLS. One thread reads and writes
// all connections and waits for none of them; another few call the handler with
// each request that has come whole. So clients that are slow, silent or many
// keep nobody from an answer: what is too slow or too large is ended, and when
// there are too many connections, the one that has done nothing useful for
// longest is.
//
// A connection's requests are answered one after another, and little more of it
// is read until an answer is sent. A client that closes its side of the
// connection counts as gone, unless 16 KiB that it sent ahead wait: its request
// is cancelled. The answer is still sent if the other side takes it.
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
  // Ends all connections; requests that wait are cancelled. Returns once all
  // exchanges have been answered in vain, and what their answers held is gone.
  ~HttpServer();

  // Refuses new connections, ends the idle ones, and the others after their
  // next answer. Returns once all that was asked is answered and sent, true,
  // or after `limit`, false.
  bool Drain(absl::Duration limit);

  int port() const;
  // Bytes of bodies and answers, and of TLS.
  int64_t held_bytes() const;

 private:
  class Port;  // Keeps Asio out of this header.

  explicit HttpServer(std::unique_ptr<Port> port);

  const std::unique_ptr<Port> port_;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_HTTP_SERVER_H_
