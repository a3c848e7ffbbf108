#ifndef SFMAMBA_SERVER_SECURITY_CALLER_H_
#define SFMAMBA_SERVER_SECURITY_CALLER_H_

#include <string>

namespace sfmamba::security {

// The permission that a call needs.
enum class Scope {
  kInfer,  // Runs a model on images.
  kRead,   // Lists models and their state. Reflection needs it too.
  kAdmin,  // Changes which models are served.
};

// The limits of one client.
struct Quota {
  // Maximum number of images in the server at once. 0 means no limit.
  int max_items = 0;
  double items_per_second = 0;  // Long-term rate of images. 0 means no limit.
  // Maximum number of images at once after an idle time. 0 means one second's
  // worth of the rate, at least 1.
  int burst = 0;
};

// The caller of a method. The caller's name identifies it for quotas, fair
// shares and the access log.
struct Caller {
  // The client's name in the token file. A caller without a token is named by
  // its address without the port, such as "ipv4:10.0.0.7". Names in the token
  // file never look like an address.
  std::string name;
  bool has_token = false;
  Quota quota;
  // True if the caller has Scope::kRead. True for every caller if the server
  // has no token file.
  bool may_read = true;
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_CALLER_H_
