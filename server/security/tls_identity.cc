#include "server/security/tls_identity.h"

#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "openssl/asn1.h"
#include "openssl/bio.h"
#include "openssl/err.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/x509.h"

namespace sfmamba::security {
namespace {

template <typename T, void (*kFree)(T*)>
struct Freer {
  void operator()(T* object) const { kFree(object); }
};
using Certificate = std::unique_ptr<X509, Freer<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY, EVP_PKEY_free>>;
struct BioFreer {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, BioFreer>;

Bio Open(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Refuses keys with a password: OpenSSL would ask for it on the terminal.
int NoPassword(char*, int, int, void*) { return 0; }

Certificate Next(BIO* pem) {
  return Certificate(PEM_read_bio_X509(pem, nullptr, NoPassword, nullptr));
}

absl::Status Wrong(absl::string_view setting, absl::string_view what) {
  ERR_clear_error();  // The next user of this thread would find the error.
  return absl::InvalidArgumentError(absl::StrCat(setting, ": ", what));
}

// Every certificate of `pem` can be read, and there is one. Returns the first.
absl::StatusOr<Certificate> ReadAll(absl::string_view setting,
                                    const std::string& pem) {
  const Bio bio = Open(pem);
  Certificate first = Next(bio.get());
  if (first == nullptr) {
    return Wrong(setting, "got no certificate, expected one in PEM");
  }
  int count = 1;
  while (Next(bio.get()) != nullptr) ++count;
  // Reading must have ended because no further certificate begins, not because
  // one is broken.
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) {
    return Wrong(setting,
                 absl::StrCat("got a certificate, the ", count + 1,
                              "th, that cannot be read, expected PEM"));
  }
  ERR_clear_error();
  return first;
}

absl::Time ToTime(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

}  // namespace

absl::StatusOr<TlsIdentity> MakeTlsIdentity(std::string certificate_chain,
                                            std::string private_key,
                                            std::string client_ca) {
  const absl::StatusOr<Certificate> certificate =
      ReadAll("tls_cert_file", certificate_chain);
  if (!certificate.ok()) return certificate.status();
  const Bio bio = Open(private_key);
  const Key key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) {
    return Wrong("tls_key_file",
                 "got no private key, expected one in PEM without a password");
  }
  // gRPC takes a key of another certificate and fails in each handshake.
  if (X509_check_private_key(certificate->get(), key.get()) != 1) {
    return Wrong("tls_key_file",
                 "got another key than that of the certificate of "
                 "tls_cert_file, expected its own");
  }
  if (!client_ca.empty()) {
    const auto authority = ReadAll("tls_client_ca_file", client_ca);
    if (!authority.ok()) return authority.status();
  }
  TlsIdentity identity;
  identity.expires = ToTime(X509_get0_notAfter(certificate->get()));
  identity.certificate_chain = std::move(certificate_chain);
  identity.private_key = std::move(private_key);
  identity.client_ca = std::move(client_ca);
  return identity;
}

}  // namespace sfmamba::security
