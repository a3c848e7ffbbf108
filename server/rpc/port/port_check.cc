#include "server/rpc/port/port_check.h"

#include <poll.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "openssl/bio.h"
#include "openssl/err.h"
#include "openssl/ssl.h"

namespace sfmamba::rpc {
namespace {

// The first bytes of a client that speaks HTTP/2 in clear: RFC 9113, 3.4, with
// settings that change none.
constexpr absl::string_view kPreface(
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);

struct Free {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using Connection = std::unique_ptr<BIO, Free>;

// Whether `event` comes within `limit`.
bool Await(const Connection& connection, short event, absl::Duration limit) {
  const int fd = BIO_get_fd(connection.get(), nullptr);
  pollfd waiting = {fd, event, 0};
  return poll(&waiting, 1, absl::ToInt64Milliseconds(limit)) == 1;
}

// Connects to "host:port"; null if that takes longer than `limit`. It does not
// block, because connecting to a port with a full backlog takes minutes.
Connection Connect(const std::string& address, absl::Duration limit) {
  Connection connection(BIO_new_connect(address.c_str()));
  if (connection == nullptr) return nullptr;
  BIO_set_nbio(connection.get(), 1);
  int connected = BIO_do_connect(connection.get());
  if (connected != 1 && BIO_should_retry(connection.get()) &&
      Await(connection, POLLOUT, limit)) {
    connected = BIO_do_connect(connection.get());
  }
  if (connected == 1) return connection;
  ERR_clear_error();
  return nullptr;
}

// The first bytes of a client that speaks HTTP/2 over TLS.
std::string ClientHello() {
  const std::unique_ptr<SSL_CTX, Free> context(
      SSL_CTX_new(TLS_client_method()));
  const std::unique_ptr<SSL, Free> ssl(SSL_new(context.get()));
  const unsigned char protocols[] = "\x02h2";
  SSL_set_alpn_protos(ssl.get(), protocols, sizeof(protocols) - 1);
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), out);  // It owns both.
  SSL_set_connect_state(ssl.get());
  SSL_do_handshake(ssl.get());  // Would read on.
  ERR_clear_error();
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out, &bytes);
  return std::string(bytes, size);
}

}  // namespace

absl::Status CallPort(const std::string& address, bool tls,
                      absl::Duration limit) {
  const auto silent = [&address](absl::string_view what) {
    return absl::UnavailableError(
        absl::StrCat(address, " does not answer: ", what));
  };
  const Connection connection = Connect(address, limit);
  if (connection == nullptr) return silent("no connection");
  const std::string hello = tls ? ClientHello() : std::string(kPreface);
  if (BIO_write(connection.get(), hello.data(),
                static_cast<int>(hello.size())) !=
      static_cast<int>(hello.size())) {
    return silent("it takes no bytes");
  }
  // A part of a handshake, an alert or settings: something reads.
  char first = 0;
  return Await(connection, POLLIN, limit) &&
                 BIO_read(connection.get(), &first, 1) == 1
             ? absl::OkStatus()
             : silent("no bytes");
}

void PortCheck::Run() {
  const absl::Status status = call_();
  failed_ = status.ok() ? 0 : failed_ + 1;
  if (failed_ == kFailures) deaf_(status);
}

}  // namespace sfmamba::rpc
