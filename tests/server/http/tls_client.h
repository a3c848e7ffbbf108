#ifndef SFMAMBA_TESTS_SERVER_HTTP_TLS_CLIENT_H_
#define SFMAMBA_TESTS_SERVER_HTTP_TLS_CLIENT_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "tests/server/http/local_connection.h"
#include "tests/testing/certificates.h"

namespace sfmamba::http {

// A connection through TLS. Each text is sent as one record. CloseSending()
// ends TCP without a word of TLS. The process must ignore SIGPIPE.
class TlsClient : public LocalConnection {
 public:
  struct Options {
    std::string ca;                            // PEM; empty: any will do.
    const Certificate* certificate = nullptr;  // Shown if it is asked for.
    int max_version = TLS1_3_VERSION;
    int min_version = TLS1_VERSION;
    std::string protocols;           // ALPN's, on the wire; empty: none.
    SSL_SESSION* session = nullptr;  // Is resumed if it is set.
    int receive_buffer = 0;          // See LocalConnection.
  };

  // Connects; Greet() begins TLS.
  TlsClient(int port, const Options& options);
  explicit TlsClient(int port) : TlsClient(port, Options()) {}

  // Does the handshake; false if either side refuses.
  bool Greet();
  // Begins the handshake, for the server to sign, and never ends it.
  void Start();
  bool Send(const std::string& text);
  // Whether the connection ends; not whether TLS does.
  bool WaitForEnd();
  // Tells TLS's end, and goes on with TCP.
  void SayEnd();

  SSL* ssl() { return ssl_.get(); }
  std::string server_certificate() const;  // PEM.
  std::string error() const { return error_; }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  ssize_t Read(char* bytes, size_t size) override;

  const std::unique_ptr<SSL_CTX, Free> context_;
  const std::unique_ptr<SSL, Free> ssl_;
  std::string error_;
};

// GET `path` through TLS: the body, or empty if there is no answer with 200.
std::string TlsGet(int port, const std::string& path);

}  // namespace sfmamba::http

#endif  // SFMAMBA_TESTS_SERVER_HTTP_TLS_CLIENT_H_
