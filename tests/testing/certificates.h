#ifndef SFMAMBA_TESTS_TESTING_CERTIFICATES_H_
#define SFMAMBA_TESTS_TESTING_CERTIFICATES_H_

#include <string>

namespace sfmamba {

// A TLS certificate and its key as PEM, made for one test.
struct Certificate {
  std::string pem;
  std::string key;
};

struct CertificateOptions {
  // The certificate's subject and one of its DNS names.
  std::string name = "localhost";
  // The certificate that signs the new one. If null, the new certificate signs
  // itself and may sign others.
  const Certificate* issuer = nullptr;
  // If true, it expired yesterday. If false, it is valid for a day.
  bool expired = false;
  // If true, the key is RSA with 2048 bits. If false, it is P-256.
  bool rsa = false;
};

// Makes a certificate for 127.0.0.1, ::1 and the name.
Certificate MakeCertificate(const CertificateOptions& options = {});

// Writes `text` to `name` in the test's folder atomically and returns the
// file's path.
std::string WriteTestFile(const std::string& name, const std::string& text);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_CERTIFICATES_H_
