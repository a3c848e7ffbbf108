#include "tests/testing/certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>

#include "gtest/gtest.h"

namespace sfmamba {
namespace {

constexpr long kDay = 24 * 60 * 60;

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

std::string Text(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return std::string(bytes, size);
}

Owned<BIO> Reader(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), text.size()));
}

void Extend(X509* certificate, X509* issuer, int name,
            const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension =
      X509V3_EXT_conf_nid(nullptr, &context, name, value.c_str());
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

Certificate MakeCertificate(const CertificateOptions& options) {
  const Owned<EVP_PKEY> key(
      options.rsa ? EVP_RSA_gen(2048)
                  : EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  const Owned<X509> certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  uint32_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()),
                  options.expired ? -kDay : kDay);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME_add_entry_by_txt(
      X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
      reinterpret_cast<const unsigned char*>(options.name.c_str()), -1, -1, 0);

  Owned<X509> issuer;
  Owned<EVP_PKEY> issuer_key;
  if (options.issuer != nullptr) {
    issuer.reset(PEM_read_bio_X509(Reader(options.issuer->pem).get(), nullptr,
                                   nullptr, nullptr));
    issuer_key.reset(PEM_read_bio_PrivateKey(Reader(options.issuer->key).get(),
                                             nullptr, nullptr, nullptr));
  }
  X509* const signer = issuer == nullptr ? certificate.get() : issuer.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(signer));
  Extend(certificate.get(), signer, NID_basic_constraints,
         issuer == nullptr ? "critical,CA:TRUE" : "critical,CA:FALSE");
  Extend(certificate.get(), signer, NID_subject_key_identifier, "hash");
  Extend(certificate.get(), signer, NID_authority_key_identifier, "keyid");
  Extend(certificate.get(), signer, NID_subject_alt_name,
         "DNS:" + options.name + ",IP:127.0.0.1,IP:::1");
  EXPECT_GT(X509_sign(certificate.get(),
                      issuer_key == nullptr ? key.get() : issuer_key.get(),
                      EVP_sha256()),
            0);

  const Owned<BIO> pem(BIO_new(BIO_s_mem())), key_pem(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(pem.get(), certificate.get());
  PEM_write_bio_PrivateKey(key_pem.get(), key.get(), nullptr, nullptr, 0,
                           nullptr, nullptr);
  return {Text(pem.get()), Text(key_pem.get())};
}

std::string WriteTestFile(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path + ".new", std::ios::binary) << text;
  EXPECT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
  return path;
}

}  // namespace sfmamba
