#include "server/admin/model_changes.h"

#include <string>

#include "gtest/gtest.h"
#include "server/errors/error.h"

namespace sfmamba::admin {
namespace {

TEST(ParseTargetTest, OfAModelAndOfAVersion) {
  for (const char* name : {"m.1-x", "models/m.1-x"}) {
    const auto target = ParseTarget(name, "name");
    ASSERT_TRUE(target.ok()) << name;
    EXPECT_EQ(target->id, "m.1-x");
    EXPECT_FALSE(target->version.has_value());
  }
  const auto target = ParseTarget("models/m/versions/12", "name");
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->id, "m");
  EXPECT_EQ(target->version, 12);
}

TEST(ParseTargetTest, WhatIsNoName) {
  for (const char* name : {"", "models/", "models//versions/1", "m/versions/1",
                           "models/m/", "models/m/labels/stable", "a/b"}) {
    const auto target = ParseTarget(name, "model");
    EXPECT_EQ(target.status().code(), absl::StatusCode::kInvalidArgument)
        << name;
    EXPECT_EQ(server::GetErrorDetail(target.status()).field, "model") << name;
  }
}

TEST(ParseTargetTest, WhatNoVersionIsCalled) {
  for (const char* version :
       {"", "0", "01", "+1", "-1", "1 ", "x", "1/2", "9223372036854775808"}) {
    const auto target =
        ParseTarget(std::string("models/m/versions/") + version, "name");
    EXPECT_EQ(target.status().code(), absl::StatusCode::kNotFound) << version;
  }
}

}  // namespace
}  // namespace sfmamba::admin
