#include "server/rest/method_paths.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::rest {
namespace {

class MethodPathsTest : public testing::Test {
 protected:
  // Returns "Method field=value ..." for the method at a path. Returns "none"
  // if there is no method.
  std::string Find(const std::string& path,
                   const std::string& http_method = "GET") const {
    const auto found = paths_.Find(http_method, path);
    if (!found.has_value()) return "none";
    std::string text = found->method->name;
    for (const auto& [name, value] : found->fields) {
      absl::StrAppend(&text, " ", name, "=", value);
    }
    return text;
  }
  // Returns the HTTP methods that a path allows. Returns "not served" if
  // `http_method` is not one of them.
  std::string Served(const std::string& path,
                     const std::string& http_method) const {
    const auto found = paths_.Find(http_method, path);
    return found->is_served ? found->allowed : "not served";
  }

  const std::vector<call::Method> methods_ = {
      {"Paint", "POST,PUT /v1/{canvas=walls/**}:paint", {}, {}, {}},
      {"Show", "GET /v1/{name=walls/**}", {}, {}, {}},
      {"List", "GET /v1/walls", {}, {}, {}},
      {"Hidden", "", {}, {}, {}},
      {"Look", "GET /v2[/rooms/{room}[/walls/{wall}]]/light", {}, {}, {}},
      {"Set", "POST /v2/rooms/{room}/light", {}, {}, {}}};
  const MethodPaths paths_{methods_};
};

TEST_F(MethodPathsTest, APathNamesAMethodAndSetsAField) {
  EXPECT_EQ(Find("/v1/walls"), "List");
  EXPECT_EQ(Find("/v1/walls/a"), "Show name=walls/a");
  EXPECT_EQ(Find("/v1/walls/a/versions/1"), "Show name=walls/a/versions/1");
  EXPECT_EQ(Find("/v1/walls/a:paint"), "Paint canvas=walls/a");
  EXPECT_EQ(Find("/v1/walls/a:b:paint"), "Paint canvas=walls/a:b");
  EXPECT_EQ(Find("/v1/walls/"), "Show name=walls/");
  for (const char* path : {"", "/v1", "/v1/wall", "/v1/walls:paint",
                           "/v1/walls/a:", "/v1/walls/a:sell", "/v2/walls"}) {
    EXPECT_EQ(Find(path), "none") << path;
  }
}

TEST_F(MethodPathsTest, AVariableIsOneSegment) {
  EXPECT_EQ(Find("/v2/light"), "Look");
  EXPECT_EQ(Find("/v2/rooms/a/light"), "Look room=a");
  EXPECT_EQ(Find("/v2/rooms/a/walls/b:c/light"), "Look room=a wall=b:c");
  for (const char* path : {"/v2/rooms/light", "/v2/rooms//light",
                           "/v2/rooms/a/b/light", "/v2/rooms/a/light/"}) {
    EXPECT_EQ(Find(path), "none") << path;
  }
}

TEST_F(MethodPathsTest, AMethodIsServedByItsVerbs) {
  for (const char* verb : {"GET", "HEAD"}) {
    EXPECT_EQ(Served("/v1/walls/a", verb), "GET, HEAD, OPTIONS") << verb;
    EXPECT_EQ(Served("/v1/walls/a:paint", verb), "not served") << verb;
  }
  for (const char* verb : {"POST", "PUT"}) {
    EXPECT_EQ(Served("/v1/walls/a", verb), "not served") << verb;
    EXPECT_EQ(Served("/v1/walls/a:paint", verb), "POST, PUT, OPTIONS") << verb;
  }
  EXPECT_EQ(Served("/v1/walls/a", "OPTIONS"), "not served");
}

TEST_F(MethodPathsTest, MethodsMayShareAPath) {
  EXPECT_EQ(Find("/v2/rooms/a/light", "GET"), "Look room=a");
  EXPECT_EQ(Find("/v2/rooms/a/light", "POST"), "Set room=a");
  EXPECT_EQ(Served("/v2/rooms/a/light", "POST"), "GET, HEAD, POST, OPTIONS");
}

TEST_F(MethodPathsTest, CoversWhatMayBeAMethods) {
  EXPECT_TRUE(paths_.Covers("/v1/walls/a:sell"));
  EXPECT_FALSE(paths_.Covers("/v1/wall"));
  EXPECT_FALSE(paths_.Covers("/v1/walls:paint"));
}

}  // namespace
}  // namespace sfmamba::rest
