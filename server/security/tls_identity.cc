#include "server/security/tls_identity.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <ctime>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "boost/asio/buffer.hpp"
#include "boost/asio/ssl/context.hpp"

namespace sfmamba::security {
namespace {

using boost::asio::ssl::context;
using Error = boost::system::error_code;

absl::Status Wrong(absl::string_view setting, absl::string_view expected,
                   absl::string_view got) {
  // Removes the error from OpenSSL's queue for this thread. Otherwise a later
  // call of OpenSSL on this thread would report the old error.
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat(setting, ": got ", got, ", expected ", expected));
}

absl::Time ToTime(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

}  // namespace

absl::Status LoadTls(const TlsIdentity& identity, context* tls) {
  Error error;
  // OpenSSL calls this callback if the private key is encrypted. The callback
  // returns an empty password, so loading the key fails. Without the callback,
  // OpenSSL would ask for the password on the terminal.
  tls->set_password_callback([](auto...) { return std::string(); }, error);
  tls->use_certificate_chain(boost::asio::buffer(identity.certificate_chain),
                             error);
  if (error) {
    return Wrong("tls_cert_file", "PEM with a CERTIFICATE and its chain",
                 error.message());
  }
  tls->use_private_key(boost::asio::buffer(identity.private_key), context::pem,
                       error);
  if (error) {
    return Wrong(
        "tls_key_file",
        "PEM with the PRIVATE KEY of tls_cert_file, without a password",
        error.message());
  }
  if (identity.client_ca.empty()) return absl::OkStatus();
  constexpr char kCa[] = "PEM with a CERTIFICATE, without a password";
  // Refuses a CA file that contains an encrypted PEM block. Boost.Asio does not
  // use the callback above for CA certificates. OpenSSL would therefore ask for
  // the password of the block on the terminal.
  if (absl::StrContains(identity.client_ca, "ENCRYPTED")) {
    return Wrong("tls_client_ca_file", kCa, "an encrypted one");
  }
  tls->add_certificate_authority(boost::asio::buffer(identity.client_ca),
                                 error);
  return error ? Wrong("tls_client_ca_file", kCa, error.message())
               : absl::OkStatus();
}

absl::StatusOr<TlsIdentity> MakeTlsIdentity(std::string certificate_chain,
                                            std::string private_key,
                                            std::string client_ca) {
  TlsIdentity identity;
  identity.certificate_chain = std::move(certificate_chain);
  identity.private_key = std::move(private_key);
  identity.client_ca = std::move(client_ca);
  context tls(context::tls_server);
  const absl::Status status = LoadTls(identity, &tls);
  if (!status.ok()) return status;
  identity.expires =
      ToTime(X509_get0_notAfter(SSL_CTX_get0_certificate(tls.native_handle())));
  return identity;
}

}  // namespace sfmamba::security
