#ifndef SFMAMBA_SERVER_HTTP_TLS_SOCKET_H_
#define SFMAMBA_SERVER_HTTP_TLS_SOCKET_H_

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>

#include "absl/types/span.h"
#include "server/http/socket.h"

namespace sfmamba::http {

// The server's side of TLS over TCP. Broken records end it as a broken
// connection does. The process must ignore SIGPIPE.
class TlsSocket final : public Socket {
 public:
  // Keeps `context` alive by itself. Owns `fd`.
  TlsSocket(SSL_CTX* context, int fd);

  bool greets() const override { return true; }
  // The handshake.
  Outcome Greet() override;
  absl::string_view failure() const override { return failure_; }
  Outcome Read(char* bytes, size_t size, size_t* read) override;
  bool has_more() const override;
  bool wants_to_write() const override { return wants_to_write_; }
  Outcome Write(absl::Span<const iovec> pieces, size_t* written) override;
  void CloseSending() override;

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  // Why the last operation, which returned `result`, did nothing.
  Outcome Failed(int result);

  const std::unique_ptr<SSL, Free> ssl_;
  bool wants_to_write_ = false;
  bool is_broken_ = false;  // Nothing more can be said.
  absl::string_view failure_ = "the peer has gone";  // Why.
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_TLS_SOCKET_H_
