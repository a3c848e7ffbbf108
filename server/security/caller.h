#ifndef SFMAMBA_SERVER_SECURITY_CALLER_H_
#define SFMAMBA_SERVER_SECURITY_CALLER_H_

#include <string>

namespace sfmamba::security {

// The permission that a call needs.
enum class Scope {
  kInfer,  // Needed to run a model on images.
  kRead,   // Needed to list models and their state, or to use reflection.
  kAdmin,  // Needed to change models or settings, or to describe the server.
};

// The limits of one client.
struct Quota {
  // The maximum number of images in the server at once. 0 means no limit.
  int max_items = 0;
  double items_per_second = 0;  // The long-term rate. 0 means no limit.
  // The maximum number of images that a client may send at once after an idle
  // time. 0 means that the burst is items_per_second, but at least 1.
  int burst = 0;
};

// The caller of a method. Quotas, fair shares and the access log identify a
// caller by name.
struct Caller {
  // The client's name in the token file. If the caller has no token, the name
  // is the caller's address without the port, such as "ipv4:10.0.0.7". Names in
  // the token file never have the form of an address.
  std::string name;
  bool has_token = false;
  Quota quota;
  // True if the caller has Scope::kRead. True for every caller if the server
  // has no token file.
  bool may_read = true;
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_CALLER_H_
