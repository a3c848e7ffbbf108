#ifndef SFMAMBA_SERVER_SECURITY_TOKENS_H_
#define SFMAMBA_SERVER_SECURITY_TOKENS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/security/caller.h"

namespace sfmamba::security {

// The clients of a token file (proto/sfmamba/v1/token_file.proto). Find()
// returns the client of a token. Stores only the hashes of the tokens.
// Thread-compatible. Immutable after Parse().
class Tokens {
 public:
  struct Client {
    Caller caller;
    uint32_t scopes = 0;  // One bit for each Scope.

    bool Has(Scope scope) const {
      return (scopes >> static_cast<int>(scope) & 1) != 0;
    }
  };

  // Parses a token file in text format. `quota` applies to clients for which
  // the file sets no quota. Returns INVALID_ARGUMENT if the text is malformed
  // or a field is invalid. The error names the position in the text or the
  // invalid field, for example "client[2].name". The error contains no hash.
  static absl::StatusOr<Tokens> Parse(const std::string& text,
                                      const Quota& quota);

  // Returns the client with `token`, or null. The time of this search does not
  // depend on the number of correct characters in `token`.
  const Client* Find(absl::string_view token) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    Digest digest;
    int client;  // Index into clients_.
  };

  std::vector<Client> clients_;
  std::vector<Entry> entries_;
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_TOKENS_H_
