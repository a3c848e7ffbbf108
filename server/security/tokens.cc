#include "server/security/tokens.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "openssl/crypto.h"
#include "openssl/sha.h"
#include "server/settings/setting.h"
#include "server/settings/textproto.h"
#include "sfmamba/v1/token_file.pb.h"

namespace sfmamba::security {
namespace {

constexpr size_t kMaxName = 64;
// The maximum number of tokens in the file. Each call compares its token with
// all tokens of the file, which takes at most 0.1 ms.
constexpr size_t kMaxTokens = 4096;
constexpr size_t kHexDigits = 64;
constexpr char kNoTokenFile[] =
    "got invalid text, which is not shown, expected a TokenFile in protobuf "
    "text format";

absl::Status Wrong(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("token_file: ", field, ": ", what));
}

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

bool IsHash(absl::string_view hex) {
  return hex.size() == kHexDigits &&
         std::all_of(hex.begin(), hex.end(),
                     [](char c) { return absl::ascii_isxdigit(c); });
}

// Returns an error of ParseTextProto() without the parser's message. The result
// keeps only the position, for example "line 3, column 7". The parser's message
// may quote text of the file, and this text may be secret. For example, a user
// may have written a token into the file instead of its hash.
absl::Status WithoutQuotes(const absl::Status& status) {
  const absl::string_view message = status.message();
  const size_t column = message.find("column ");
  const size_t end =
      column == absl::string_view::npos ? column : message.find(':', column);
  if (end == absl::string_view::npos) {
    return Wrong("text", kNoTokenFile);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(message.substr(0, end), ": ", kNoTokenFile));
}

absl::StatusOr<uint32_t> ScopesOf(const v1::TokenClient& client,
                                  const std::string& field) {
  uint32_t scopes = 0;
  for (const int scope : client.scope()) {
    if (scope != v1::INFER && scope != v1::READ && scope != v1::ADMIN) {
      return Wrong(
          absl::StrCat(field, ".scope"),
          absl::StrCat("got ", scope, ", expected INFER, READ or ADMIN"));
    }
    scopes |= 1u << (scope - v1::INFER);
  }
  if (scopes == 0) {
    return Wrong(absl::StrCat(field, ".scope"),
                 "got none, expected INFER, READ or ADMIN");
  }
  return scopes;
}

static_assert(static_cast<int>(Scope::kRead) == v1::READ - v1::INFER &&
                  static_cast<int>(Scope::kAdmin) == v1::ADMIN - v1::INFER,
              "Scope and TokenScope are in the same order");

Quota QuotaOf(const v1::ClientQuota& given, Quota quota) {
  if (given.max_items() > 0) quota.max_items = given.max_items();
  if (given.items_per_second() > 0) {
    quota.items_per_second = given.items_per_second();
    // The token file sets a rate for this client. The default burst is only
    // meant for the default rate, so this client does not use it. A burst of 0
    // means that the burst is computed from the client's rate.
    quota.burst = 0;
  }
  if (given.burst() > 0) quota.burst = given.burst();
  return quota;
}

}  // namespace

absl::StatusOr<Tokens> Tokens::Parse(const std::string& text,
                                     const Quota& quota) {
  v1::TokenFile file;
  const absl::Status parsed = server::ParseTextProto("token_file", text, &file);
  if (!parsed.ok()) return WithoutQuotes(parsed);
  Tokens tokens;
  absl::flat_hash_set<std::string> names, hashes;
  for (int i = 0; i < file.client_size(); ++i) {
    const v1::TokenClient& given = file.client(i);
    const std::string field = absl::StrCat("client[", i, "]");
    if (!IsName(given.name())) {
      return Wrong(absl::StrCat(field, ".name"),
                   absl::StrCat("got ", given.name().size(),
                                " characters, expected 1 to ", kMaxName,
                                " of letters, digits, \".\", \"_\", \"-\""));
    }
    if (!names.insert(given.name()).second) {
      return Wrong(
          absl::StrCat(field, ".name"),
          absl::StrCat("got \"", given.name(),
                       "\", which another client has, expected each once"));
    }
    const absl::Status ranges = server::CheckRanges(given.quota());
    if (!ranges.ok()) {
      return Wrong(absl::StrCat(field, ".quota"), ranges.message());
    }
    const absl::StatusOr<uint32_t> scopes = ScopesOf(given, field);
    if (!scopes.ok()) return scopes.status();
    if (given.sha256().empty()) {
      return Wrong(absl::StrCat(field, ".sha256"),
                   "got none, expected 64 hexadecimal digits");
    }
    for (int k = 0; k < given.sha256_size(); ++k) {
      const std::string at = absl::StrCat(field, ".sha256[", k, "]");
      const std::string hex = absl::AsciiStrToLower(given.sha256(k));
      if (!IsHash(hex)) {
        return Wrong(at, absl::StrCat("got ", hex.size(),
                                      " characters, expected 64 hexadecimal "
                                      "digits"));
      }
      if (!hashes.insert(hex).second) {
        return Wrong(at, "got a hash that is listed twice, expected each once");
      }
      Entry entry;
      const std::string bytes = absl::HexStringToBytes(hex);
      std::copy(bytes.begin(), bytes.end(), entry.digest.begin());
      entry.client = i;
      tokens.entries_.push_back(entry);
    }
    tokens.clients_.push_back(
        {{given.name(), /*has_token=*/true, QuotaOf(given.quota(), quota)},
         *scopes});
  }
  if (tokens.entries_.size() > kMaxTokens) {
    return Wrong("client",
                 absl::StrCat("got ", tokens.entries_.size(),
                              " hashes, expected at most ", kMaxTokens));
  }
  return tokens;
}

const Tokens::Client* Tokens::Find(absl::string_view token) const {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
         digest.data());
  // The loop always compares all entries. If the loop ended at the matching
  // entry, an attacker could measure the time and thus learn the position of
  // the entry.
  const Client* found = nullptr;
  for (const Entry& entry : entries_) {
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) {
      found = &clients_[entry.client];
    }
  }
  return found;
}

}  // namespace sfmamba::security
