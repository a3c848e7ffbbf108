#ifndef SFMAMBA_BASE_VERSION_H_
#define SFMAMBA_BASE_VERSION_H_

namespace sfmamba::base {

// The version of server and clients. The Python package's __version__ is the
// same.
constexpr char kVersion[] = "0.1.0";

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_VERSION_H_
