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

// Finds the client of a call that arrives through proxies. A proxy in a trusted
// network sends its client's address in the header x-forwarded-for. The header
// is ignored if any other peer sends it. Immutable.
class TrustedProxies {
 public:
  // Trusts no peer.
  TrustedProxies() = default;

  // Returns an object that trusts the given networks. Each element is a network
  // in CIDR notation, such as "10.0.0.0/8" or "fd00::/8", or a single address.
  // If an element is malformed, returns INVALID_ARGUMENT with the name of the
  // setting and the first such element.
  static absl::StatusOr<TrustedProxies> Parse(
      absl::Span<const std::string> networks);

  struct Client {
    // The client's address or network, such as "ipv4:10.0.0.7" or
    // "ipv6:2001:db8:1:2::/64". IPv6 clients are identified by their /64
    // network, because one machine can use all addresses of its network.
    // IPv4-mapped IPv6 addresses are written as IPv4. The loopback address ::1
    // is not shortened to a network.
    std::string name;
    // True if the client cannot be found because a forwarded address is
    // malformed. `name` is then the peer's name.
    bool malformed = false;
  };

  // Returns the client of a call. `peer` is in gRPC's format, such as
  // "ipv4:10.0.0.7:41234". `forwarded` contains the values of the
  // x-forwarded-for headers in their order. If the peer is trusted, the
  // addresses are read from right to left, and the first untrusted address is
  // the client. If there is none, or if the peer is not trusted, the client is
  // the peer.
  Client ClientOf(absl::string_view peer,
                  absl::Span<const std::string> forwarded) const;

 private:
  // An IPv6 address. IPv4 addresses are mapped to IPv6.
  using Address = std::array<uint8_t, 16>;
  struct Network {
    Address address = {};
    int bits = 0;
  };

  bool IsTrusted(const Address& address) const;

  std::vector<Network> networks_;
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_TRUSTED_PROXIES_H_
