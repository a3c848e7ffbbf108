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

// What a request is refused with that no handler sees: text/plain.
inline HttpResponse PlainRefusal(int status, const std::string& message) {
  HttpResponse response{
      status, {{"Content-Type", "text/plain; charset=utf-8"}}, {message, "\n"}};
  if (status == 503) response.headers.push_back({"Retry-After", "1"});
  return response;
}

// Settings of a port. A request beyond a limit is refused with the status in
// brackets.
struct HttpOptions {
  std::string what = "the HTTP port";  // In errors.
  std::string host;
  int port = 0;  // 0: any free one.

  // What connections begin TLS with; null: they speak in clear.
  std::shared_ptr<TlsContext> tls;  // Used by this port alone.

  // Most connections: beyond it those are ended that have done nothing useful
  // for longest, but none whose request waits for its answer.
  int max_connections = 1024;
  // Most bytes of the request line and the headers (431), and the time for them
  // to come (408), and for the handshake of TLS.
  size_t max_head_bytes = 16 << 10;
  absl::Duration head_time = absl::Seconds(5);
  // Most bytes of a request's body (413). 0: a request with a body is refused.
  int64_t max_body_bytes = 64 << 20;
  // Most bytes of all bodies until their requests are answered and all answers
  // until they are sent (503, with Retry-After): bodies are refused while there
  // is more. Room for a body of a known length is taken before it is read. It
  // is at least what lets one client send the largest body.
  int64_t max_held_bytes = int64_t{256} << 20;
  // The part of max_held_bytes that one client alone may fill with bodies, 0.5
  // to 1. See server::ClientShares.
  double client_share = 1;
  // For a body to come (408). Once head_time is over it must also have come at
  // `min_body_rate` bytes a second on average.
  absl::Duration body_time = absl::Seconds(60);
  int64_t min_body_rate = 16 << 10;
  // For the client to take its answer; then the connection is ended.
  absl::Duration answer_time = absl::Seconds(20);
  // How long a connection may wait for its next request. Zero: a connection
  // has one request.
  absl::Duration idle_time = absl::Seconds(60);
  int threads = 2;  // That call the handler.

  // Called once with each request when its headers have come and before its
  // body is read; `body` is empty. May write into it. An answer refuses the
  // request, and its connection ends. Called by the port's thread; must not
  // block.
  std::function<std::optional<HttpResponse>(HttpRequest& request)> admit =
      [](HttpRequest&) { return std::nullopt; };
  // Returns headers that each answer to a request gets beside its own. Of
  // `request` there is what was read of its head. Called by the port's thread.
  std::function<Headers(const HttpRequest& request)> headers =
      [](const HttpRequest&) { return Headers(); };
  // Makes the answers that no handler makes. Of `request` there is what was
  // read of its head; `message` says what was got and what was expected.
  // Thread-safe; must not block.
  std::function<HttpResponse(const HttpRequest& request, int status,
                             const std::string& message)>
      refusal = [](const HttpRequest&, int status, const std::string& message) {
        return PlainRefusal(status, message);
      };
  // Called for each connection that is ended because there are too many, and
  // for each whose handshake fails, with its peer as in HttpRequest and why.
  // Both are called by the port's thread, and must not block.
  std::function<void()> refused = [] {};
  std::function<void(absl::string_view peer, absl::string_view reason)>
      handshake_failed = [](absl::string_view, absl::string_view) {};
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_HTTP_OPTIONS_H_
