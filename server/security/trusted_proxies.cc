#include "server/security/trusted_proxies.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace sfmamba::security {
namespace {

using Address = std::array<uint8_t, 16>;

// The number of bits before the IPv4 address in an IPv4-mapped IPv6 address.
constexpr int kV4Bits = 96;
// The number of bytes that name the /64 network in an IPv6 address.
constexpr int kClientBytes = 8;
constexpr size_t kMaxShown = 64;

std::optional<Address> ParseAddress(absl::string_view text) {
  const std::string address(text);
  if (absl::StrContains(address, '\0')) return std::nullopt;
  Address bytes = {};
  bytes[10] = bytes[11] = 0xff;
  if (inet_pton(AF_INET, address.c_str(), &bytes[12]) == 1 ||
      inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1) {
    return bytes;
  }
  return std::nullopt;
}

bool IsV4(const Address& address) {
  return IN6_IS_ADDR_V4MAPPED(
      reinterpret_cast<const in6_addr*>(address.data()));
}

bool IsPort(absl::string_view text) {
  int port = 0;
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, &port) && port <= 65535;
}

// Parses an address with an optional port, such as "10.0.0.7:80" or "[::1]:80".
std::optional<Address> ParseEndpoint(absl::string_view text) {
  std::pair<absl::string_view, absl::string_view> parts = {text, ""};
  if (absl::ConsumePrefix(&text, "[")) {
    parts = absl::StrSplit(text, absl::MaxSplits(']', 1));
    if (!absl::StrContains(text, ']')) return std::nullopt;
    if (!absl::StrContains(parts.first, ':')) return std::nullopt;
    if (!parts.second.empty() && !absl::ConsumePrefix(&parts.second, ":")) {
      return std::nullopt;
    }
    if (absl::EndsWith(text, ":")) return std::nullopt;
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    parts = absl::StrSplit(text, ':');
    if (parts.second.empty()) return std::nullopt;
  }
  if (!parts.second.empty() && !IsPort(parts.second)) return std::nullopt;
  return ParseAddress(parts.first);
}

std::string NameOf(const Address& address) {
  static constexpr Address kLoopback = {0, 0, 0, 0, 0, 0, 0, 0,
                                        0, 0, 0, 0, 0, 0, 0, 1};
  char text[INET6_ADDRSTRLEN] = "";
  if (IsV4(address)) {
    inet_ntop(AF_INET, &address[12], text, sizeof(text));
    return absl::StrCat("ipv4:", text);
  }
  if (address == kLoopback) return "ipv6:::1";
  Address network = {};
  std::copy_n(address.begin(), kClientBytes, network.begin());
  inet_ntop(AF_INET6, network.data(), text, sizeof(text));
  return absl::StrCat("ipv6:", text, "/64");
}

// Returns the IP address of a peer. `peer` is in gRPC's format, such as
// "ipv4:10.0.0.7:41234". Returns nullopt for a peer without an IP address, for
// example a Unix socket.
std::optional<Address> AddressOfPeer(absl::string_view peer) {
  if (absl::ConsumePrefix(&peer, "ipv4:")) return ParseEndpoint(peer);
  if (!absl::ConsumePrefix(&peer, "ipv6:")) return std::nullopt;
  return ParseEndpoint(absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}}));
}

}  // namespace

absl::StatusOr<TrustedProxies> TrustedProxies::Parse(
    absl::Span<const std::string> networks) {
  TrustedProxies proxies;
  for (const std::string& text : networks) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(text, absl::MaxSplits('/', 1));
    const std::optional<Address> address = ParseAddress(parts.first);
    const bool is_v4 = !absl::StrContains(parts.first, ':');
    const int most = is_v4 ? 32 : 128;
    int bits = most;
    const bool has_bits = absl::StrContains(text, '/');
    if (!address.has_value() ||
        (has_bits &&
         (!absl::SimpleAtoi(parts.second, &bits) || bits < 0 || bits > most))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "trusted_proxies: got \"",
          absl::CHexEscape(text.substr(0, kMaxShown)),
          "\", expected an address or a network such as 10.0.0.0/8 or "
          "fd00::/8"));
    }
    proxies.networks_.push_back({*address, is_v4 ? kV4Bits + bits : bits});
  }
  return proxies;
}

bool TrustedProxies::IsTrusted(const Address& address) const {
  for (const Network& network : networks_) {
    // IPv4 addresses are mapped to IPv6 here, so an IPv6 network such as ::/0
    // would contain them. This check excludes IPv4 addresses from all networks
    // whose prefix is shorter than 96 bits. A mapped IPv4 network has a prefix
    // of at least 96 bits.
    if (IsV4(address) && network.bits < kV4Bits) continue;
    const int bytes = network.bits / 8;
    const int rest = network.bits % 8;
    if (!std::equal(address.begin(), address.begin() + bytes,
                    network.address.begin())) {
      continue;
    }
    if (rest == 0 ||
        (address[bytes] ^ network.address[bytes]) >> (8 - rest) == 0) {
      return true;
    }
  }
  return false;
}

TrustedProxies::Client TrustedProxies::ClientOf(
    absl::string_view peer, absl::Span<const std::string> forwarded) const {
  const std::optional<Address> address = AddressOfPeer(peer);
  // A peer without an IP address, for example a Unix socket, has no port that
  // must be removed from its name. The name is therefore returned unchanged.
  if (!address.has_value()) return {std::string(peer), false};
  const std::string own = NameOf(*address);
  if (forwarded.empty() || !IsTrusted(*address)) return {own, false};
  const std::string all = absl::StrJoin(forwarded, ",");
  const std::vector<absl::string_view> hops = absl::StrSplit(all, ',');
  for (auto hop = hops.rbegin(); hop != hops.rend(); ++hop) {
    const absl::string_view text = absl::StripAsciiWhitespace(*hop);
    if (text.empty()) continue;  // RFC 9110 allows empty list elements.
    const std::optional<Address> found = ParseEndpoint(text);
    if (!found.has_value()) return {own, true};
    if (!IsTrusted(*found)) return {NameOf(*found), false};
  }
  return {own, false};
}

}  // namespace sfmamba::security
