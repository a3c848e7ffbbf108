#include "server/security/caller.h"

namespace sfmamba::security {

const char* ScopeName(Scope scope) {
  switch (scope) {
    case Scope::kInfer:
      return "infer";
    case Scope::kRead:
      return "read";
    case Scope::kAdmin:
      return "admin";
  }
  return "";
}

}  // namespace sfmamba::security
