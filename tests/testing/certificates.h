#ifndef SFMAMBA_TESTS_TESTING_CERTIFICATES_H_
#define SFMAMBA_TESTS_TESTING_CERTIFICATES_H_

#include <string>

namespace sfmamba {

// A certificate for TLS and its key, made anew for each test, as PEM.
struct Certificate {
  std::string pem;
  std::string key;
};

struct CertificateOptions {
  std::string name = "localhost";  // Its subject, and a DNS name it is for.
  // Who signs it; null: it signs itself and may sign others.
  const Certificate* issuer = nullptr;
  bool expired = false;  // Yesterday. Otherwise it lasts for a day.
  bool rsa = false;      // 2048 bits; else an elliptic curve, P-256.
};

// It is for 127.0.0.1, ::1 and the name.
Certificate MakeCertificate(const CertificateOptions& options = {});

// Writes `text` to `name` in the test's folder at once, as a rename does, and
// returns the file's path.
std::string WriteTestFile(const std::string& name, const std::string& text);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_CERTIFICATES_H_
