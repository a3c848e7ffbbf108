#include "server/admin/model_changes.h"

#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::admin {
namespace {

using ModelChangesTest = prediction::PredictionTest;

TEST_F(ModelChangesTest, ADrainingServerChangesNothing) {
  ModelChanges changes(repository_.get(), &log_);
  changes.StartDraining();
  absl::Status status;
  const auto done = [&status](const absl::Status& ended) { status = ended; };
  changes.Unload("somebody", "fake", "name", {done});
  EXPECT_EQ(server::GetErrorDetail(status).reason, "DRAINING");
  status = absl::OkStatus();
  changes.Load("somebody", "fake", "name", std::nullopt, {done});
  EXPECT_EQ(server::GetErrorDetail(status).reason, "DRAINING");
  EXPECT_EQ(
      server::GetErrorDetail(changes.SetLabel("somebody", "fake", "stable", 3))
          .reason,
      "DRAINING");
  EXPECT_TRUE(repository_->Find("fake", "model").ok());
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
