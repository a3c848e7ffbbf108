#include "server/rest/kserve/route.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sfmamba::rest {
namespace {

using Action = KserveAction;

constexpr char kGet[] = "GET, HEAD, OPTIONS";
constexpr char kPost[] = "POST, OPTIONS";
constexpr char kGetPost[] = "GET, HEAD, POST, OPTIONS";

// What follows "/v2/", with {} in the place of a model and its version.
constexpr struct {
  const char* path;
  const char* methods;
  Action action;
  security::Scope post_scope = security::Scope::kRead;
} kPatterns[] = {
    {"", kGet, Action::kServerMetadata},
    {"health/live", kGet, Action::kServerLive},
    {"health/ready", kGet, Action::kServerReady},
    {"models/stats", kGet, Action::kStatistics},
    {"models/{}", kGet, Action::kModelMetadata},
    {"models/{}/ready", kGet, Action::kModelReady},
    {"models/{}/config", kGet, Action::kModelConfig},
    {"models/{}/stats", kGet, Action::kStatistics},
    {"models/{}/infer", kPost, Action::kInfer, security::Scope::kInfer},
    {"repository/index", kPost, Action::kIndex},
    {"repository/models/{}/load", kPost, Action::kLoad,
     security::Scope::kAdmin},
    {"repository/models/{}/unload", kPost, Action::kUnload,
     security::Scope::kAdmin},
    {"systemsharedmemory", kGetPost, Action::kSharedMemory,
     security::Scope::kInfer},
    {"cudasharedmemory", kGetPost, Action::kSharedMemory,
     security::Scope::kInfer},
    {"models/{}/trace/setting", kGetPost, Action::kSettings,
     security::Scope::kAdmin},
    {"trace/setting", kGetPost, Action::kSettings, security::Scope::kAdmin},
    {"logging", kGetPost, Action::kSettings, security::Scope::kAdmin},
};

constexpr size_t kMaxSegments = 8;  // More than the longest path has.

using Segments = std::vector<absl::string_view>;

// Takes names out of a path's segments.
void TakeNames(Segments* path, KserveRoute* route) {
  Segments& parts = *path;
  const auto take = [&parts](size_t at) {
    return std::string(std::exchange(parts[at], "{}"));
  };
  if (parts.size() > 2 && parts[0] == "repository" && parts[1] == "models") {
    route->model = take(2);
  } else if (parts.size() > 1 && parts[0] == "models" &&
             !(parts.size() == 2 && parts[1] == "stats")) {
    route->model = take(1);
    if (parts.size() > 3 && parts[2] == "versions") {
      route->version = take(3);
      parts.erase(parts.begin() + 2, parts.begin() + 4);
    }
  } else if (parts[0] == "systemsharedmemory" ||
             parts[0] == "cudasharedmemory") {
    parts.resize(1);  // All paths below have one answer.
  }
}

}  // namespace

bool KserveRoute::Serves(absl::string_view method) const {
  if (method == "HEAD") return Serves("GET");
  for (const absl::string_view served : absl::StrSplit(methods, ", ")) {
    if (served == method) return method != "OPTIONS";
  }
  return false;
}

std::optional<KserveRoute> FindKserveRoute(absl::string_view path) {
  if (!absl::ConsumePrefix(&path, "/v2")) return std::nullopt;
  if (!path.empty() && (!absl::ConsumePrefix(&path, "/") || path.empty())) {
    return std::nullopt;
  }
  // A stranger's path may have thousands of segments: the last piece gets them.
  Segments parts = absl::StrSplit(path, absl::MaxSplits('/', kMaxSegments));
  if (!path.empty() && absl::c_linear_search(parts, "")) return std::nullopt;
  KserveRoute route = {};
  TakeNames(&parts, &route);
  const std::string wanted = absl::StrJoin(parts, "/");
  for (const auto& pattern : kPatterns) {
    if (wanted != pattern.path) continue;
    route.action = pattern.action;
    route.methods = pattern.methods;
    route.post_scope = pattern.post_scope;
    return route;
  }
  return std::nullopt;
}

}  // namespace sfmamba::rest
