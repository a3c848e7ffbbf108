#ifndef SFMAMBA_SERVER_SECURITY_CALLER_H_
#define SFMAMBA_SERVER_SECURITY_CALLER_H_

#include <string>

namespace sfmamba::security {

// What a call does, and so what its caller must be allowed to do.
enum class Scope {
  kInfer,  // Asks a model about images.
  kRead,   // Asks which models there are, and how they do. Reflection too.
  kAdmin,  // Changes what is served.
};

// How much one client may ask for.
struct Quota {
  int max_items = 0;            // Images at a time; 0: any number.
  double items_per_second = 0;  // In the long run; 0: any number.
  // Images at once after a while without any; 0: one second's, at least 1.
  int burst = 0;
};

// Who makes a call. It is what quotas, fair shares and the access log go by.
struct Caller {
  // The name that the token file gives to the token; without a token the
  // address without its port, "ipv4:10.0.0.7". No name is an address.
  std::string name;
  bool has_token = false;
  Quota quota;
  bool may_read = true;  // Has Scope::kRead, as all have without tokens.
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_CALLER_H_
