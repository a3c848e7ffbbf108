#ifndef SFMAMBA_BASE_VERSION_H_
#define SFMAMBA_BASE_VERSION_H_

namespace sfmamba::base {

// The version of the server and the clients. __version__ of the Python package
// must be equal.
constexpr char kVersion[] = "0.1.0";

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_VERSION_H_
