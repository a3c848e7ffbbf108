#include "server/rest/kserve/route.h"

#include <vector>

#include "absl/strings/str_split.h"

namespace sfmamba::rest {
namespace {

using Action = KserveAction;

constexpr char kGet[] = "GET, HEAD, OPTIONS";
constexpr char kPost[] = "POST, OPTIONS";
constexpr char kGetPost[] = "GET, HEAD, POST, OPTIONS";

// MODEL, VERSION and REGION match any segment. The first pattern that matches
// counts: "/v2/models/stats" comes before "/v2/models/MODEL".
struct Pattern {
  const char* path;
  const char* methods;
  Action action;
};
constexpr Pattern kPatterns[] = {
    {"/v2", kGet, Action::kServerMetadata},
    {"/v2/health/live", kGet, Action::kServerLive},
    {"/v2/health/ready", kGet, Action::kServerReady},
    {"/v2/models/stats", kGet, Action::kStatistics},
    {"/v2/models/MODEL", kGet, Action::kModelMetadata},
    {"/v2/models/MODEL/ready", kGet, Action::kModelReady},
    {"/v2/models/MODEL/config", kGet, Action::kModelConfig},
    {"/v2/models/MODEL/stats", kGet, Action::kStatistics},
    {"/v2/models/MODEL/infer", kPost, Action::kInfer},
    {"/v2/models/MODEL/trace/setting", kGetPost, Action::kSettings},
    {"/v2/models/MODEL/versions/VERSION", kGet, Action::kModelMetadata},
    {"/v2/models/MODEL/versions/VERSION/ready", kGet, Action::kModelReady},
    {"/v2/models/MODEL/versions/VERSION/config", kGet, Action::kModelConfig},
    {"/v2/models/MODEL/versions/VERSION/stats", kGet, Action::kStatistics},
    {"/v2/models/MODEL/versions/VERSION/infer", kPost, Action::kInfer},
    {"/v2/repository/index", kPost, Action::kIndex},
    {"/v2/repository/models/MODEL/load", kPost, Action::kLoad},
    {"/v2/repository/models/MODEL/unload", kPost, Action::kUnload},
    {"/v2/systemsharedmemory/status", kGet, Action::kMemoryStatus},
    {"/v2/systemsharedmemory/unregister", kPost, Action::kMemoryUnregister},
    {"/v2/systemsharedmemory/region/REGION/status", kGet,
     Action::kMemoryStatus},
    {"/v2/systemsharedmemory/region/REGION/register", kPost,
     Action::kMemoryRegister},
    {"/v2/systemsharedmemory/region/REGION/unregister", kPost,
     Action::kMemoryUnregister},
    {"/v2/cudasharedmemory/status", kGet, Action::kMemoryStatus},
    {"/v2/cudasharedmemory/unregister", kPost, Action::kMemoryUnregister},
    {"/v2/cudasharedmemory/region/REGION/status", kGet, Action::kMemoryStatus},
    {"/v2/cudasharedmemory/region/REGION/register", kPost,
     Action::kMemoryRegister},
    {"/v2/cudasharedmemory/region/REGION/unregister", kPost,
     Action::kMemoryUnregister},
    {"/v2/trace/setting", kGetPost, Action::kSettings},
    {"/v2/logging", kGetPost, Action::kSettings},
};

constexpr size_t kMaxSegments = 8;  // More than the longest pattern has.

using Segments = std::vector<absl::string_view>;

bool Matches(const Pattern& pattern, const Segments& path, KserveRoute* route) {
  const Segments wanted = absl::StrSplit(pattern.path, '/');
  if (wanted.size() != path.size()) return false;
  *route = {pattern.action, pattern.methods, "", ""};
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == "MODEL") {
      route->model = std::string(path[i]);
    } else if (wanted[i] == "VERSION") {
      route->version = std::string(path[i]);
    } else if (wanted[i] != "REGION" && wanted[i] != path[i]) {
      return false;
    }
    if (i > 0 && path[i].empty()) return false;
  }
  return true;
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
  // A stranger's path may have thousands of segments: the last piece gets them.
  const Segments segments =
      absl::StrSplit(path, absl::MaxSplits('/', kMaxSegments));
  KserveRoute route;
  for (const Pattern& pattern : kPatterns) {
    if (Matches(pattern, segments, &route)) return route;
  }
  return std::nullopt;
}

}  // namespace sfmamba::rest
