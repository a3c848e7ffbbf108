#include "server/admin/model_changes.h"

#include <string>

#include "gtest/gtest.h"
#include "server/base/error.h"

namespace sfmamba::admin {
namespace {

TEST(AllowLoopbackTest, ThisMachineMay) {
  for (const char* peer :
       {"ipv4:127.0.0.1:5000", "ipv4:127.8.9.1:1", "ipv6:%5B::1%5D:5000",
        "ipv6:[::1]:5000", "unix:/tmp/socket"}) {
    EXPECT_TRUE(AllowLoopback({peer, ""}).ok()) << peer;
  }
}

TEST(AllowLoopbackTest, OthersMayNot) {
  for (const char* peer :
       {"", "ipv4:10.0.0.7:5000", "ipv4:12.7.0.0:1", "ipv4:128.0.0.1:1",
        "ipv6:%5B::2%5D:5000", "ipv6:%5Bfe80::1%5D:5000", "127.0.0.1:5",
        "ipv6:%5B::1:2%5D:80", "ipv4:1127.0.0.1:5"}) {
    const auto name = AllowLoopback({peer, "Bearer x"});
    EXPECT_EQ(name.status().code(), absl::StatusCode::kPermissionDenied)
        << peer;
    EXPECT_EQ(server::GetErrorDetail(name.status()).reason, "SCOPE_MISSING");
  }
}

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
