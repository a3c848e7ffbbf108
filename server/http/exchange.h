#ifndef SFMAMBA_SERVER_HTTP_EXCHANGE_H_
#define SFMAMBA_SERVER_HTTP_EXCHANGE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "server/security/caller.h"
#include "server/shares/client_shares.h"

namespace sfmamba::http {

struct HttpRequest {
  // The HTTP method in upper case, such as "GET".
  std::string method;
  // The path after percent-decoding, without the query.
  std::string path;
  // The query parameters after percent-decoding.
  std::multimap<std::string, std::string> query;
  // The names of the headers are in lower case.
  std::multimap<std::string, std::string> headers;
  std::string body;  // The complete body.
  // The client's address in gRPC's notation, such as "ipv4:127.0.0.1:5000".
  std::string peer;
  // The time when the complete request had arrived, from base::SteadyNow().
  absl::Time came = absl::InfiniteFuture();
  security::Caller caller;  // HttpOptions::admit sets this member.

  // Returns the name under which server::ClientShares counts the client. This
  // is the caller's name, or the address in `peer` if the caller has no name.
  std::string client() const {
    return caller.name.empty() ? std::string(server::ClientOf(peer))
                               : caller.name;
  }
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 200;
  // The headers that the handler sets. The server adds Date, Content-Length and
  // Connection.
  Headers headers;
  // The pieces of the body, which are sent one after another.
  std::vector<std::string> body;
};

// The reason why a request is refused before it reaches the handler.
struct Refusal {
  int status;
  // Says what was received and what was expected.
  std::string message;
};

// A complete HTTP request and the obligation to respond to it.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Returns the request. The caller may move from the request's members. Must
  // not be called after Answer().
  virtual HttpRequest& request() = 0;

  // Sets the function that is called if the client resets the connection before
  // the response is sent. If the client has already reset the connection,
  // OnCancel() calls `cancelled` immediately. A client that has only closed its
  // sending side still gets its response. `cancelled` is called at most once,
  // on any thread, and never after the `sent` function of Answer(). OnCancel()
  // may be called at most once, before Answer().
  virtual void OnCancel(absl::AnyInvocable<void()> cancelled) = 0;

  // Sends the response without blocking. Must be called exactly once, on any
  // thread. `sent` is called exactly once, after the response has been sent or
  // dropped. The caller may then release the data that the response needs.
  // `sent` may be called on any thread and must not block.
  virtual void Answer(HttpResponse response,
                      absl::AnyInvocable<void()> sent) = 0;
  void Answer(HttpResponse response) {
    Answer(std::move(response), [] {});
  }
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_EXCHANGE_H_
