// Tests the options that a server's configuration gives its repository.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "gtest/gtest.h"
#include "server/observability/memory_limit.h"
#include "server/repository/model_repository.h"

namespace sfmamba::repository {
namespace {

TEST(RepositoryOptionsTest, AreTheSettingsOfModels) {
  v1::ServerConfig config;
  config.set_model_repository("/models");
  config.add_model("a=/x/1");
  config.add_model("b=/y=z/2");
  config.set_startup_models("a,b,");
  config.set_random_init(true);
  config.set_client_share(0.75);
  config.set_default_precision("BF16");
  base::ToProto(absl::Seconds(7), config.mutable_drain_timeout());
  base::ToProto(absl::Seconds(3), config.mutable_profile_budget());
  int failed = 0, started = 0;
  const ModelRepository::Options options = RepositoryOptions(
      config, [&failed](const absl::Status&) { ++failed; },
      [&started] { ++started; });
  EXPECT_EQ(options.directory, "/models");
  EXPECT_EQ(options.models, (std::map<std::string, std::string>{
                                {"a", "/x/1"}, {"b", "/y=z/2"}}));
  EXPECT_EQ(options.startup_models, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(options.random_init);
  EXPECT_EQ(options.executor.batch.client_share, 0.75);
  EXPECT_EQ(options.executor.drain_timeout, absl::Seconds(7));
  EXPECT_EQ(options.executor.profile_budget, absl::Seconds(3));
  EXPECT_EQ(options.default_precision, v1::BF16);
  options.executor.device_failed(absl::OkStatus());
  EXPECT_EQ(failed, 1);
  options.background_starts();
  EXPECT_EQ(started, 1);
}

TEST(RepositoryOptionsTest, TheFolderIsReadAgainAndCallsAreServedWhereAsked) {
  for (const auto& [control, calls, polls] :
       {std::tuple("none", false, false), std::tuple("explicit", true, false),
        std::tuple("poll", false, true),
        std::tuple("poll+explicit", true, true)}) {
    v1::ServerConfig config;
    config.set_model_control(control);
    base::ToProto(absl::Seconds(5), config.mutable_poll_period());
    const ModelRepository::Options options = RepositoryOptions(config);
    EXPECT_EQ(options.explicit_control, calls) << control;
    EXPECT_EQ(options.poll_period,
              polls ? absl::Seconds(5) : absl::InfiniteDuration())
        << control;
  }
}

TEST(RepositoryOptionsTest, DeviceAndLoadPolicyHaveOneValueThatCounts) {
  v1::ServerConfig config;
  EXPECT_FALSE(RepositoryOptions(config).on_gpus);
  EXPECT_FALSE(RepositoryOptions(config).unload_first);
  config.set_device("cuda");
  config.set_load_policy("resource");
  EXPECT_TRUE(RepositoryOptions(config).on_gpus);
  EXPECT_TRUE(RepositoryOptions(config).unload_first);
}

TEST(RepositoryOptionsTest, WhatIsResidentIsNoLongerFree) {
  const int64_t free = RepositoryOptions(v1::ServerConfig()).free_memory();
  EXPECT_LT(free, observability::MemoryLimit());
  EXPECT_GT(free, 0);
}

}  // namespace
}  // namespace sfmamba::repository
