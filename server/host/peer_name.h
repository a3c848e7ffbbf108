#ifndef SFMAMBA_SERVER_HOST_PEER_NAME_H_
#define SFMAMBA_SERVER_HOST_PEER_NAME_H_

#include <string>

namespace sfmamba::server {

// Whom the connected socket `fd` is connected to, as gRPC writes it:
// "ipv4:127.0.0.1:5000", "ipv6:%5B::1%5D:5000". IPv4 within IPv6 is IPv4. Empty
// if it is connected no more.
std::string PeerName(int fd);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_PEER_NAME_H_
