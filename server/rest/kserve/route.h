#ifndef SFMAMBA_SERVER_REST_KSERVE_ROUTE_H_
#define SFMAMBA_SERVER_REST_KSERVE_ROUTE_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::rest {

// What a path under /v2 asks for.
enum class KserveAction {
  kServerMetadata,
  kServerLive,
  kServerReady,
  kModelMetadata,
  kModelReady,
  kModelConfig,
  kStatistics,
  kInfer,
  kIndex,
  kLoad,
  kUnload,
  kMemoryStatus,
  kMemoryRegister,
  kMemoryUnregister,
  kSettings  // Of traces and logs.
};

struct KserveRoute {
  KserveAction action;
  const char* methods;  // That the path serves: "GET, HEAD, OPTIONS".
  // Empty if the path names none.
  std::string model;
  std::string version;

  bool Serves(absl::string_view method) const;
};

// The route of a decoded path; none if nothing is there.
std::optional<KserveRoute> FindKserveRoute(absl::string_view path);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_ROUTE_H_
