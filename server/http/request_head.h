#ifndef SFMAMBA_SERVER_HTTP_REQUEST_HEAD_H_
#define SFMAMBA_SERVER_HTTP_REQUEST_HEAD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/http/exchange.h"

namespace sfmamba::http {

// Why a request reaches no handler.
struct Refusal {
  int status;
  std::string message;  // What was got, and what was expected.
};

// What stands before a request's body.
struct RequestHead {
  HttpRequest request;  // Without body and peer.
  // The connection may have a next request after this.
  bool keep_alive = true;
  // The client waits for "100 Continue" before it sends the body.
  bool expects_continue = false;
  // How long the body is: by chunks, or `body_bytes`.
  bool is_chunked = false;
  int64_t body_bytes = 0;
};

// Parses request line, headers and the empty line, each with its CR LF; there
// is no other line break or control character in them. Refuses whatever servers
// read in different ways: two lengths of a body, folded headers, blanks before
// a colon. Statuses: 400; 417 (expects something unknown), 501 (a body coded
// otherwise than by chunks), 505 (another version of HTTP).
std::optional<Refusal> ParseHead(absl::string_view text, RequestHead* head);

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_REQUEST_HEAD_H_
