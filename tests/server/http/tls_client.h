#ifndef SFMAMBA_TESTS_SERVER_HTTP_TLS_CLIENT_H_
#define SFMAMBA_TESTS_SERVER_HTTP_TLS_CLIENT_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "tests/server/http/local_connection.h"
#include "tests/testing/certificates.h"

namespace sfmamba::http {

// A connection with TLS. Each text is sent as one TLS record. CloseSending()
// ends TCP without ending TLS. The process must ignore SIGPIPE.
class TlsClient : public LocalConnection {
 public:
  struct Options {
    // A certificate authority in PEM. If empty, any server is accepted.
    std::string ca;
    // Sent if the server asks for a certificate.
    const Certificate* certificate = nullptr;
    int max_version = TLS1_3_VERSION;
    int min_version = TLS1_VERSION;
    // The protocols for ALPN in the format of TLS. If empty, none are sent.
    std::string protocols;
    // The session to resume, or null.
    SSL_SESSION* session = nullptr;
    int receive_buffer = 0;  // See LocalConnection.
  };

  // Connects. Call Greet() to begin TLS.
  TlsClient(int port, const Options& options);
  explicit TlsClient(int port) : TlsClient(port, Options()) {}

  // Makes the handshake. Returns false if the client or the server refuses.
  bool Greet();
  // Begins a handshake, so that the server has to sign, and never finishes it.
  void Start();
  bool Send(const std::string& text);
  // Waits until the server ends the TCP connection. Ends the test if this takes
  // too long. Always returns true.
  bool WaitForEnd();
  // Sends TLS's end and keeps TCP open.
  void SayEnd();

  SSL* ssl() { return ssl_.get(); }
  // Returns the server's certificate in PEM.
  std::string server_certificate() const;
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

// Sends GET `path` with TLS. Returns the body, or "" if the status is not 200.
std::string TlsGet(int port, const std::string& path);

}  // namespace sfmamba::http

#endif  // SFMAMBA_TESTS_SERVER_HTTP_TLS_CLIENT_H_
