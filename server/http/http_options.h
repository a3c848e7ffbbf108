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

// Returns a response that refuses a request with `message` as plain text. Used
// for requests that reach no handler. If the status is 503, the response asks
// the client to retry after 1 second.
inline HttpResponse PlainRefusal(int status, const std::string& message) {
  HttpResponse response{
      status, {{"Content-Type", "text/plain; charset=utf-8"}}, {message, "\n"}};
  if (status == 503) response.headers.push_back({"Retry-After", "1"});
  return response;
}

// Settings of an HTTP port.
struct HttpOptions {
  // The name of the port in errors.
  std::string what = "the HTTP port";
  std::string host;
  // If the port number is 0, the system selects a free port.
  int port = 0;

  // The TLS settings. If null, connections are plaintext.
  std::shared_ptr<TlsContext> tls;  // Must not be shared with other ports.

  // The maximum number of connections. If there are more, the server closes the
  // connection with the lowest Connection::State. If several connections have
  // this state, the server closes the connection that has been in this state
  // longest. A connection whose request waits for its response is never closed.
  int max_connections = 1024;
  // The maximum size in bytes of the request line and the headers together. A
  // request that exceeds this size gets status 431. The request line and the
  // headers must arrive within `head_time`. A request that takes longer gets
  // status 408. A TLS handshake has the same time limit.
  size_t max_head_bytes = 16 << 10;
  absl::Duration head_time = absl::Seconds(5);
  // The maximum size in bytes of a request's body. A request with a larger body
  // gets status 413. If the maximum is 0, every request with a body is refused.
  int64_t max_body_bytes = 64 << 20;
  // The maximum number of bytes of all request bodies and responses together. A
  // body counts until its request is answered. A response counts until it is
  // sent. If a new body does not fit, its request gets status 503 with the
  // header Retry-After. If the length of a body is known, its bytes are
  // reserved before the body is read. If the limit is smaller than
  // `max_body_bytes` / `client_share`, the server uses this quotient as the
  // limit. The largest allowed body then fits into the share of one client.
  int64_t max_held_bytes = int64_t{256} << 20;
  // The maximum fraction of max_held_bytes that the bodies of one client may
  // occupy, from 0.5 to 1. See server::ClientShares.
  double client_share = 1;
  // A body must arrive within two time limits. Both limits begin when the
  // request's head has arrived:
  // - The whole body must arrive within `body_time`.
  // - If n bytes of the body have arrived, the next bytes must arrive within
  //   `head_time` plus n / `min_body_rate` seconds. `min_body_rate` is in bytes
  //   per second. This limit stops slow clients before the end of `body_time`.
  // A request that exceeds one of these limits gets status 408.
  absl::Duration body_time = absl::Seconds(60);
  int64_t min_body_rate = 16 << 10;
  // The time limit for writing a response. The server closes the connection
  // when this time is over.
  absl::Duration answer_time = absl::Seconds(20);
  // The time for which a connection may stay open without a request. If this
  // time is zero, each connection serves only one request.
  absl::Duration idle_time = absl::Seconds(60);
  int threads = 2;  // The number of threads that call the handler.

  // Called once for each request when its headers have arrived. The body is
  // read later, and `request.body` is still empty. The function may change the
  // request. If the function returns a response, the request is refused with
  // this response and the connection is closed. Called by the port's thread.
  // Must not block.
  std::function<std::optional<HttpResponse>(HttpRequest& request)> admit =
      [](HttpRequest&) { return std::nullopt; };
  // Returns additional headers for the response to `request`. If a request is
  // refused before its head is complete, `request` contains only the part of
  // the head that was read. Called by the port's thread.
  std::function<Headers(const HttpRequest& request)> headers =
      [](const HttpRequest&) { return Headers(); };
  // Returns the response to a request that reaches no handler. `request` may
  // contain only the part of the head that was read. `message` says what was
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
