#include "server/rest/method_paths.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::rest {
namespace {

class MethodPathsTest : public testing::Test {
 protected:
  // "Service/Method field=value" of the method at a path; "none".
  std::string Find(const std::string& path) const {
    const auto found = paths_.Find(path);
    if (!found.has_value()) return "none";
    return absl::StrCat(found->method->name, " ", found->field, "=",
                        found->value);
  }

  const std::vector<call::Method> methods_ = {
      {"Service/Paint", "POST /v1/{canvas=walls/**}:paint", {}, {}, {}},
      {"Service/Show", "GET /v1/{name=walls/**}", {}, {}, {}},
      {"Service/List", "GET /v1/walls", {}, {}, {}},
      {"Service/NotOverHttp", "", {}, {}, {}}};
  const MethodPaths paths_{methods_};
};

TEST_F(MethodPathsTest, APathNamesAMethodAndSetsAField) {
  EXPECT_EQ(Find("/v1/walls"), "Service/List =");
  EXPECT_EQ(Find("/v1/walls/a"), "Service/Show name=walls/a");
  EXPECT_EQ(Find("/v1/walls/a/versions/1"),
            "Service/Show name=walls/a/versions/1");
  EXPECT_EQ(Find("/v1/walls/a:paint"), "Service/Paint canvas=walls/a");
  EXPECT_EQ(Find("/v1/walls/a:b:paint"), "Service/Paint canvas=walls/a:b");
  EXPECT_EQ(Find("/v1/walls/"), "Service/Show name=walls/");
  for (const char* path : {"", "/v1", "/v1/wall", "/v1/walls:paint",
                           "/v1/walls/a:", "/v1/walls/a:sell", "/v2/walls"}) {
    EXPECT_EQ(Find(path), "none") << path;
  }
}

TEST_F(MethodPathsTest, AMethodIsServedByItsVerbs) {
  const auto show = paths_.Find("/v1/walls/a");
  const auto paint = paths_.Find("/v1/walls/a:paint");
  for (const char* verb : {"GET", "HEAD"}) {
    EXPECT_TRUE(show->Serves(verb)) << verb;
    EXPECT_FALSE(paint->Serves(verb)) << verb;
  }
  for (const char* verb : {"POST", "PUT"}) {
    EXPECT_FALSE(show->Serves(verb)) << verb;
    EXPECT_TRUE(paint->Serves(verb)) << verb;
  }
  EXPECT_FALSE(show->Serves("OPTIONS"));
}

TEST_F(MethodPathsTest, CoversWhatMayBeAMethods) {
  EXPECT_TRUE(paths_.Covers("/v1/walls"));
  EXPECT_TRUE(paths_.Covers("/v1/walls/a:sell"));
  EXPECT_FALSE(paths_.Covers("/v1/wall"));
  EXPECT_FALSE(paths_.Covers("/v1/walls:paint"));
}

}  // namespace
}  // namespace sfmamba::rest
