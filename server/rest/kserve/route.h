#ifndef SFMAMBA_SERVER_REST_KSERVE_ROUTE_H_
#define SFMAMBA_SERVER_REST_KSERVE_ROUTE_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/security/caller.h"

namespace sfmamba::rest {

// The request that a path under /v2 stands for.
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
  kSharedMemory,  // Removed.
  kSettings       // The protocol's settings of traces and logs.
};

struct KserveRoute {
  KserveAction action;
  const char* methods;  // The path's methods: "GET, HEAD, OPTIONS".
  // What POST needs; the others need kRead.
  security::Scope post_scope;
  // Empty if the path names none.
  std::string model;
  std::string version;

  bool Serves(absl::string_view method) const;
};

// The route of a decoded path; none if nothing is there.
std::optional<KserveRoute> FindKserveRoute(absl::string_view path);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_ROUTE_H_
