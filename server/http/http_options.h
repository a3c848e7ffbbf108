#ifndef SFMAMBA_SERVER_HTTP_HTTP_OPTIONS_H_
#define SFMAMBA_SERVER_HTTP_HTTP_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/http/exchange.h"
#include "server/http/tls_context.h"

namespace sfmamba::http {

// Returns a refusal as text/plain, for requests that reach no handler.
inline HttpResponse PlainRefusal(int status, const std::string& message) {
  HttpResponse response{
      status, {{"Content-Type", "text/plain; charset=utf-8"}}, {message, "\n"}};
  if (status == 503) response.headers.push_back({"Retry-After", "1"});
  return response;
}

// Settings of a port. The number in brackets is the HTTP status of a request
// that exceeds the limit.
struct HttpOptions {
  std::string what = "the HTTP port";  // Names the port in errors.
  std::string host;
  int port = 0;  // 0 selects a free port.

  // The TLS settings. If null, connections are plaintext.
  std::shared_ptr<TlsContext> tls;  // Must not be shared with other ports.

  // The maximum number of connections. If there are more, the server closes the
  // connection with the lowest Connection::State. If several connections have
  // this state, the server closes the one that has had it longest. A connection
  // whose request waits for its response is never closed.
  int max_connections = 1024;
  // The maximum size of the request line and the headers together (431). They
  // must arrive within `head_time` (408). A TLS handshake has the same time
  // limit.
  size_t max_head_bytes = 16 << 10;
  absl::Duration head_time = absl::Seconds(5);
  // The maximum size of a request's body (413). If 0, a request with a body is
  // refused.
  int64_t max_body_bytes = 64 << 20;
  // The maximum number of bytes of all request bodies and responses together
  // (503, with Retry-After). A body counts until its request is answered, and a
  // response until it is sent. While the limit is exceeded, new bodies are
  // refused. If the length of a body is known, its bytes are reserved before
  // the body is read. The server raises a limit that is too small for one
  // client to send the largest body.
  int64_t max_held_bytes = int64_t{256} << 20;
  // The fraction of max_held_bytes that a single client's bodies may fill, from
  // 0.5 to 1. See server::ClientShares.
  double client_share = 1;
  // The time limit for receiving a body (408). After `head_time`, the client
  // must also have sent the body at `min_body_rate` bytes per second on
  // average.
  absl::Duration body_time = absl::Seconds(60);
  int64_t min_body_rate = 16 << 10;
  // The time limit for writing a response. The server closes the connection
  // when this time is over.
  absl::Duration answer_time = absl::Seconds(20);
  // How long a connection may wait for its next request. If zero, a connection
  // serves one request.
  absl::Duration idle_time = absl::Seconds(60);
  int threads = 2;  // The number of threads that call the handler.

  // Called once for each request when its headers have arrived. The body is
  // read later, and `request.body` is still empty. The function may change the
  // request. If it returns a response, the request is refused with this
  // response and the connection is closed. Called by the port's thread. Must
  // not block.
  std::function<std::optional<HttpResponse>(HttpRequest& request)> admit =
      [](HttpRequest&) { return std::nullopt; };
  // Returns additional headers for each response to `request`. `request`
  // contains the part of the head that was read. Called by the port's thread.
  std::function<Headers(const HttpRequest& request)> headers =
      [](const HttpRequest&) { return Headers(); };
  // Returns the response to a request that reaches no handler. `request`
  // contains the part of the head that was read. `message` says what was
  // received and what was expected. Thread-safe. Must not block.
  std::function<HttpResponse(const HttpRequest& request, int status,
                             const std::string& message)>
      refusal = [](const HttpRequest&, int status, const std::string& message) {
        return PlainRefusal(status, message);
      };
  // The server calls `refused` for each new connection beyond
  // `max_connections`, and `handshake_failed` for each failed TLS handshake.
  // `peer` has the form of HttpRequest::peer. The port's thread calls both
  // functions. They must not block.
  std::function<void()> refused = [] {};
  std::function<void(absl::string_view peer, absl::string_view reason)>
      handshake_failed = [](absl::string_view, absl::string_view) {};
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_HTTP_OPTIONS_H_
