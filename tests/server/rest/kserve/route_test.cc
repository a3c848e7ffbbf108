#include "server/rest/kserve/route.h"

#include <string>

#include "gtest/gtest.h"

namespace sfmamba::rest {
namespace {

using Action = KserveAction;

TEST(KserveRouteTest, EachPathHasItsAction) {
  const std::pair<const char*, Action> kCases[] = {
      {"/v2", Action::kServerMetadata},
      {"/v2/health/live", Action::kServerLive},
      {"/v2/health/ready", Action::kServerReady},
      {"/v2/models/stats", Action::kStatistics},
      {"/v2/models/a", Action::kModelMetadata},
      {"/v2/models/a/ready", Action::kModelReady},
      {"/v2/models/a/config", Action::kModelConfig},
      {"/v2/models/a/stats", Action::kStatistics},
      {"/v2/models/a/infer", Action::kInfer},
      {"/v2/models/a/trace/setting", Action::kSettings},
      {"/v2/models/a/versions/3", Action::kModelMetadata},
      {"/v2/models/a/versions/3/ready", Action::kModelReady},
      {"/v2/models/a/versions/3/config", Action::kModelConfig},
      {"/v2/models/a/versions/3/stats", Action::kStatistics},
      {"/v2/models/a/versions/3/infer", Action::kInfer},
      {"/v2/repository/index", Action::kIndex},
      {"/v2/repository/models/a/load", Action::kLoad},
      {"/v2/repository/models/a/unload", Action::kUnload},
      {"/v2/systemsharedmemory/status", Action::kSharedMemory},
      {"/v2/cudasharedmemory/region/r/register", Action::kSharedMemory},
      {"/v2/trace/setting", Action::kSettings},
      {"/v2/logging", Action::kSettings},
  };
  for (const auto& [path, action] : kCases) {
    const auto route = FindKserveRoute(path);
    ASSERT_TRUE(route.has_value()) << path;
    EXPECT_EQ(route->action, action) << path;
    const bool named = std::string(path).find("/a") != std::string::npos;
    EXPECT_EQ(route->model, named ? "a" : "") << path;
    const bool versioned =
        std::string(path).find("/versions/") != std::string::npos;
    EXPECT_EQ(route->version, versioned ? "3" : "") << path;
  }
}

TEST(KserveRouteTest, APostNeedsTheScopeOfWhatItDoes) {
  using security::Scope;
  const std::pair<const char*, Scope> kCases[] = {
      {"/v2/repository/index", Scope::kRead},
      {"/v2/models/a/infer", Scope::kInfer},
      {"/v2/repository/models/a/load", Scope::kAdmin},
      {"/v2/repository/models/a/unload", Scope::kAdmin},
  };
  for (const auto& [path, scope] : kCases) {
    EXPECT_EQ(FindKserveRoute(path)->post_scope, scope) << path;
  }
}

TEST(KserveRouteTest, OtherPathsHaveNone) {
  for (const char* path :
       {"", "/", "/v2/", "/v1/models/a", "/v2/models", "/v2/models/",
        "/v2/models//infer", "/v2/models/a/", "/v2/models/a/b/infer",
        "/v2/models/a/versions//infer", "/v2/models/a/versions/3/infer/",
        "/v2/health", "/v2/repository/models/a/reload", "v2",
        "/v2/repository/models", "/v2/models/a/versions"}) {
    EXPECT_FALSE(FindKserveRoute(path).has_value()) << path;
  }
  EXPECT_FALSE(FindKserveRoute("/v2" + std::string(1 << 20, '/')).has_value());
}

TEST(KserveRouteTest, APathServesItsMethods) {
  const auto infer = FindKserveRoute("/v2/models/a/infer");
  EXPECT_TRUE(infer->Serves("POST"));
  for (const char* method : {"GET", "HEAD", "OPTIONS", "", "POST,", "POS"}) {
    EXPECT_FALSE(infer->Serves(method)) << method;
  }
  const auto metadata = FindKserveRoute("/v2/models/a");
  EXPECT_TRUE(metadata->Serves("GET"));
  EXPECT_TRUE(metadata->Serves("HEAD"));
  EXPECT_FALSE(metadata->Serves("POST"));
}

}  // namespace
}  // namespace sfmamba::rest
