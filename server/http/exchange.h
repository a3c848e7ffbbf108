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
  std::string method;                             // In upper case: "GET".
  std::string path;                               // Decoded, without the query.
  std::multimap<std::string, std::string> query;  // Decoded.
  std::multimap<std::string, std::string> headers;  // Names in lower case.
  std::string body;                                 // Whole.
  std::string peer;  // In gRPC's form: "ipv4:127.0.0.1:5000".
  // When it had come whole, by base::SteadyNow().
  absl::Time came = absl::InfiniteFuture();
  security::Caller caller;  // Once it is admitted: HttpOptions::admit.

  // The client as shares count it: the caller's name, or the peer's address if
  // the caller has no name.
  std::string client() const {
    return caller.name.empty() ? std::string(server::ClientOf(peer))
                               : caller.name;
  }
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 200;
  // Without those of the connection and the body's length.
  Headers headers;
  // Is sent piece by piece.
  std::vector<std::string> body;
};

// Why a request reaches no handler.
struct Refusal {
  int status;
  std::string message;  // What was got, and what was expected.
};

// A request over HTTP, which has come whole, and the duty to answer it.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Until Answer() is called. Its parts may be moved from.
  virtual HttpRequest& request() = 0;

  // To be called at most once, before Answer(). `cancelled` is called at most
  // once, by any thread, if the client resets the connection before its answer
  // is sent, and at once if it has done so already; never after `sent` was
  // called. A client that has only closed its sending side still reads its
  // answer.
  virtual void OnCancel(absl::AnyInvocable<void()> cancelled) = 0;

  // To be called exactly once, by any thread; must not block. `sent` is called
  // exactly once, when the answer was sent or given up, by any thread: what the
  // answer holds can go then. It must not block either.
  virtual void Answer(HttpResponse response,
                      absl::AnyInvocable<void()> sent) = 0;
  void Answer(HttpResponse response) {
    Answer(std::move(response), [] {});
  }
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_EXCHANGE_H_
