#ifndef SFMAMBA_SERVER_HOST_PEER_NAME_H_
#define SFMAMBA_SERVER_HOST_PEER_NAME_H_

#include <string>

namespace sfmamba::server {

// Returns the peer address of the connected socket `fd` in gRPC's notation.
// Examples are "ipv4:127.0.0.1:5000" and "ipv6:%5B::1%5D:5000". An IPv4-mapped
// IPv6 address is written as IPv4. Returns "" if the socket is no longer
// connected.
std::string PeerName(int fd);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_PEER_NAME_H_
