#ifndef SFMAMBA_TESTS_SERVER_SECURITY_TOKEN_TEXTS_H_
#define SFMAMBA_TESTS_SERVER_SECURITY_TOKEN_TEXTS_H_

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "openssl/sha.h"

namespace sfmamba::security {

// Returns the hash of a token as a token file contains it.
inline std::string HashOf(const std::string& token) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
         digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
}

// Returns the text of one client in a token file. `scopes` is for example
// "INFER" or "INFER, READ". `more` contains further fields.
inline std::string ClientText(const std::string& name, const std::string& token,
                              const std::string& scopes,
                              const std::string& more = "") {
  return absl::StrCat("client { name: '", name, "' sha256: '", HashOf(token),
                      "' scope: [", scopes, "] ", more, " }\n");
}

}  // namespace sfmamba::security

#endif  // SFMAMBA_TESTS_SERVER_SECURITY_TOKEN_TEXTS_H_
