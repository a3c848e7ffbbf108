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
// writes all connections and never blocks on a connection. A pool of other
// threads calls the handler once for each complete request. Slow, silent or
// numerous clients therefore cannot block other clients. The server closes a
// connection that exceeds a time or size limit. If there are too many
// connections, the server closes the least useful connection. See
// HttpOptions::max_connections.
//
// The server answers the requests of a connection one after another. While a
// response is pending, the server reads only a few more KiB from the
// connection. A client that only closes its sending side still gets its
// response. If the client resets the connection, the request is cancelled. If
// the client had already sent 16 KiB of further requests, the server notices
// the reset only after the response is sent.
//
// Thread-safe.
class HttpServer {
 public:
  // Answers one request. Called by several threads at the same time. Not called
  // if the client has already disconnected. If the handler throws, or destroys
  // the exchange without an answer, the client receives status 500.
  using Handler = std::function<void(std::unique_ptr<Exchange>)>;

  // Starts a server. If the server cannot bind the address, returns
  // UNAVAILABLE. The error names the address.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpOptions options,
                                                           Handler handler);
  // Closes all connections and cancels the waiting requests. Then waits until
  // the handler has answered or destroyed the exchange of every request. These
  // late answers are discarded, because the connections are closed.
  ~HttpServer();

  // Refuses new connections and closes idle ones. The other connections are
  // closed after their next response. Returns true when all pending requests
  // are answered and their responses are sent. Returns false if this takes
  // longer than `limit`.
  bool Drain(absl::Duration limit);

  int port() const;
  // Returns the number of bytes that request bodies, responses and TLS state
  // occupy.
  int64_t held_bytes() const;

 private:
  // Port is a separate class, so that this header does not include Asio.
  class Port;

  explicit HttpServer(std::unique_ptr<Port> port);

  const std::unique_ptr<Port> port_;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_HTTP_SERVER_H_
