#ifndef SFMAMBA_SERVER_SECURITY_TRUSTED_PROXIES_H_
#define SFMAMBA_SERVER_SECURITY_TRUSTED_PROXIES_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sfmamba::security {

// Finds out which client a call comes from if proxies stand in front of the
// server. A proxy in a trusted network names its caller in `x-forwarded-for`.
// The header is ignored if anybody else sends it. Immutable.
class TrustedProxies {
 public:
  // No peer is trusted.
  TrustedProxies() = default;

  // Trusts networks in CIDR notation, such as "10.0.0.0/8" or "fd00::/8", and
  // single addresses. INVALID_ARGUMENT names the setting and the first value
  // that is neither.
  static absl::StatusOr<TrustedProxies> Parse(
      absl::Span<const std::string> networks);

  struct Client {
    // Such as "ipv4:10.0.0.7" or "ipv6:2001:db8:1:2::/64": one machine can have
    // all addresses of a /64. IPv4 within IPv6 is IPv4, and the loopback
    // address ::1 is whole.
    std::string name;
    // An address that decides about the client could not be read. The client is
    // then the peer.
    bool malformed = false;
  };

  // Returns the client of a call. `peer` is as gRPC writes it:
  // "ipv4:10.0.0.7:41234". `forwarded` are the values of the headers
  // x-forwarded-for in their order. They are read from right to left, and the
  // first address that is not trusted is the client. If all are trusted, the
  // client is the peer.
  Client ClientOf(absl::string_view peer,
                  absl::Span<const std::string> forwarded) const;

 private:
  using Address = std::array<uint8_t, 16>;  // IPv4 within IPv6.
  struct Network {
    Address address = {};
    int bits = 0;
  };

  bool IsTrusted(const Address& address) const;

  std::vector<Network> networks_;
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_TRUSTED_PROXIES_H_
