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

// Serves HTTP/1 on a port, in plaintext or through TLS. One thread reads and
// writes all connections and never blocks on a connection. Several other
// threads call the handler with each complete request. Slow, silent or numerous
// clients therefore cannot block other clients. The server closes connections
// that exceed a time or size limit. If there are too many connections, the
// server closes the one that is least useful. See HttpOptions::max_connections.
//
// The requests of a connection are answered one after another. While a response
// is pending, the server reads only a few more KiB from the connection. A
// client that only closes its sending side still gets its response. If the
// client resets the connection, the request is cancelled. The server notices
// the reset late if the client has sent 16 KiB ahead.
//
// Thread-safe.
class HttpServer {
 public:
  // Called by several threads at the same time. The server drops a request
  // whose client has disconnected before this call. If an exchange is destroyed
  // without an answer, the client receives status 500. This also happens if the
  // handler throws.
  using Handler = std::function<void(std::unique_ptr<Exchange>)>;

  // Returns UNAVAILABLE with the address if it cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpOptions options,
                                                           Handler handler);
  // Closes all connections and cancels the waiting requests. Returns once all
  // exchanges are answered or destroyed. Their responses are discarded.
  ~HttpServer();

  // Refuses new connections and closes idle ones. The other connections are
  // closed after their next response. Returns true once all pending requests
  // are answered and their responses are sent. Returns false after `limit`.
  bool Drain(absl::Duration limit);

  int port() const;
  // Returns the number of bytes of request bodies, responses and TLS state.
  int64_t held_bytes() const;

 private:
  class Port;  // Keeps Asio out of this header.

  explicit HttpServer(std::unique_ptr<Port> port);

  const std::unique_ptr<Port> port_;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_HTTP_SERVER_H_
