#include "server/settings/sha256.h"

#include <fstream>
#include <memory>
#include <vector>

#include "absl/strings/escaping.h"
#include "openssl/evp.h"

namespace sfmamba::server {

absl::StatusOr<std::string> FilesSha256(absl::Span<const std::string> paths) {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(
      EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  bool ok = context != nullptr &&
            EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  std::vector<char> block(1 << 20);
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return absl::NotFoundError("cannot be opened");
    while (ok && file) {
      file.read(block.data(), block.size());
      ok = EVP_DigestUpdate(context.get(), block.data(), file.gcount()) == 1;
    }
    ok = ok && file.eof();
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (!ok || EVP_DigestFinal_ex(context.get(), digest, &length) != 1) {
    return absl::NotFoundError("cannot be read");
  }
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<char*>(digest), length));
}

}  // namespace sfmamba::server
