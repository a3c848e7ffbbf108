#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "server/api/kserve/kserve_methods.h"
#include "server/rest/method_paths.h"

namespace sfmamba::rest {
namespace {

class KservePathsTest : public testing::Test {
 protected:
  // Returns "Method name version" for the method at a path. Returns "none" if
  // there is no method.
  std::string Find(const std::string& http_method,
                   const std::string& path) const {
    const auto found = paths_.Find(http_method, path);
    if (!found.has_value()) return "none";
    if (!found->is_served) return absl::StrCat("only ", found->allowed);
    std::string text(absl::StripPrefix(found->method->name,
                                       "inference.GRPCInferenceService/"));
    for (const auto& [name, value] : found->fields) {
      absl::StrAppend(&text, " ", value);
    }
    return text;
  }

  const std::vector<call::Method> methods_ = kserve::KserveMethods({});
  const MethodPaths paths_{methods_};
};

TEST_F(KservePathsTest, EachPathHasItsMethod) {
  const std::pair<const char*, const char*> kReads[] = {
      {"/v2", "ServerMetadata"},
      {"/v2/health/live", "ServerLive"},
      {"/v2/health/ready", "ServerReady"},
      {"/v2/models/stats", "ModelStatistics"},
      {"/v2/models/a", "ModelMetadata a"},
      {"/v2/models/a/ready", "ModelReady a"},
      {"/v2/models/a/config", "ModelConfig a"},
      {"/v2/models/a/stats", "ModelStatistics a"},
      {"/v2/models/stats/stats", "ModelStatistics stats"},
      {"/v2/models/a/trace/setting", "GetTraceSettings a"},
      {"/v2/models/a/versions/3", "ModelMetadata a 3"},
      {"/v2/models/a/versions/3/ready", "ModelReady a 3"},
      {"/v2/models/a/versions/3/config", "ModelConfig a 3"},
      {"/v2/models/a/versions/3/stats", "ModelStatistics a 3"},
      {"/v2/models/a/versions/3/trace/setting", "GetTraceSettings a 3"},
      {"/v2/systemsharedmemory/status", "SystemSharedMemoryStatus"},
      {"/v2/cudasharedmemory/region/r/status", "CudaSharedMemoryStatus r"},
      {"/v2/trace/setting", "GetTraceSettings"},
      {"/v2/logging", "GetLogSettings"}};
  for (const auto& [path, method] : kReads) {
    EXPECT_EQ(Find("GET", path), method) << path;
    EXPECT_EQ(Find("HEAD", path), method) << path;
  }
  const std::pair<const char*, const char*> kWrites[] = {
      {"/v2/models/a/infer", "ModelInfer a"},
      {"/v2/models/a/versions/3/infer", "ModelInfer a 3"},
      {"/v2/repository/index", "RepositoryIndex"},
      {"/v2/repository/models/a/load", "RepositoryModelLoad a"},
      {"/v2/repository/models/a/unload", "RepositoryModelUnload a"},
      {"/v2/systemsharedmemory/region/r/register",
       "SystemSharedMemoryRegister r"},
      {"/v2/cudasharedmemory/unregister", "CudaSharedMemoryUnregister"},
      {"/v2/trace/setting", "ChangeTraceSettings"},
      {"/v2/logging", "ChangeLogSettings"}};
  for (const auto& [path, method] : kWrites) {
    EXPECT_EQ(Find("POST", path), method) << path;
  }
}

TEST_F(KservePathsTest, OtherPathsHaveNone) {
  for (const char* path :
       {"", "/", "/v2/", "/v1/models/a", "/v2/models", "/v2/models/",
        "/v2/models//infer", "/v2/models/a/", "/v2/models/a/b/infer",
        "/v2/models/a/versions//infer", "/v2/models/a/versions/3/infer/",
        "/v2/health", "/v2/repository/models/a/reload", "v2",
        "/v2/repository/models", "/v2/models/a/versions"}) {
    EXPECT_EQ(Find("GET", path), "none") << path;
  }
  EXPECT_EQ(Find("GET", "/v2" + std::string(1 << 20, '/')), "none");
}

TEST_F(KservePathsTest, APathServesItsMethods) {
  for (const char* method : {"GET", "HEAD", "OPTIONS", "", "POST,", "POS"}) {
    EXPECT_EQ(Find(method, "/v2/models/a/infer"), "only POST, OPTIONS")
        << method;
  }
  EXPECT_EQ(Find("POST", "/v2/models/a"), "only GET, HEAD, OPTIONS");
  EXPECT_EQ(Find("PUT", "/v2/logging"), "only GET, HEAD, POST, OPTIONS");
}

}  // namespace
}  // namespace sfmamba::rest
