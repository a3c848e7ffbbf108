#include "server/repository/batch_times.h"

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::repository {
namespace {

using batching::BatchTime;

class BatchTimesTest : public testing::Test {
 protected:
  static std::vector<BatchTime> Taking(absl::Duration duration) {
    return {{{64, 64}, 1, duration, duration}};
  }
  // The time of a batch of one image; none: zero.
  absl::Duration Known(BatchTimes& times, const std::string& model,
                       const batching::BatchProfileKey& key) {
    const std::vector<BatchTime> known = times.Read(model, key);
    return known.empty() ? absl::ZeroDuration() : known[0].median;
  }

  const batching::BatchProfileKey key_ = {"a network", "cpu", "42"};
  observability::Logger log_{stderr, observability::LogLevel::kError,
                             observability::LogFormat::kText};
  BatchTimes times_{"", &log_};
};

TEST_F(BatchTimesTest, WhatAVersionHasWrittenIsKnownOfAnother) {
  EXPECT_TRUE(times_.Read("models/m/versions/1", key_).empty());
  times_.Write("models/m/versions/1", key_, Taking(absl::Seconds(3)));
  EXPECT_EQ(Known(times_, "models/m/versions/2", key_), absl::Seconds(3));
  EXPECT_EQ(Known(times_, "models/other/versions/1", key_), absl::Seconds(3));
  times_.Write("models/m/versions/2", key_, Taking(absl::Seconds(4)));
  EXPECT_EQ(Known(times_, "models/m/versions/1", key_), absl::Seconds(4));
}

TEST_F(BatchTimesTest, AnotherNetworkDeviceOrBuildIsNotKnown) {
  times_.Write("models/m/versions/1", key_, Taking(absl::Seconds(3)));
  for (const batching::BatchProfileKey& other :
       {batching::BatchProfileKey{"another", key_.device, key_.build},
        batching::BatchProfileKey{key_.content, "another", key_.build},
        batching::BatchProfileKey{key_.content, key_.device, "another"}}) {
    EXPECT_TRUE(times_.Read("models/m/versions/1", other).empty());
  }
}

TEST_F(BatchTimesTest, NothingKnownReplacesNothing) {
  times_.Write("models/m/versions/1", key_, Taking(absl::Seconds(3)));
  times_.Write("models/m/versions/1", key_, {});
  EXPECT_EQ(Known(times_, "models/m/versions/1", key_), absl::Seconds(3));
}

TEST_F(BatchTimesTest, ForgetsWhatWasWrittenLongAgo) {
  for (int i = 0; i < 1000; ++i) {
    batching::BatchProfileKey key = key_;
    key.content = absl::StrCat("network ", i);
    times_.Write("models/m/versions/1", key, Taking(absl::Seconds(i + 1)));
    key.content = "network 0";  // It is written now and then.
    if (i % 10 == 0) {
      times_.Write("models/m/versions/1", key, Taking(absl::Seconds(1)));
    }
  }
  const auto known = [this](int network) {
    batching::BatchProfileKey key = key_;
    key.content = absl::StrCat("network ", network);
    return Known(times_, "models/m/versions/1", key);
  };
  EXPECT_EQ(known(999), absl::Seconds(1000));
  EXPECT_EQ(known(0), absl::Seconds(1));
  EXPECT_EQ(known(1), absl::ZeroDuration());
}

TEST_F(BatchTimesTest, AFolderKeepsThemFromOneStartToTheNext) {
  const std::string folder = testing::TempDir() + "/times";
  std::filesystem::remove_all(folder);
  BatchTimes(folder, &log_)
      .Write("models/m/versions/1", key_, Taking(absl::Seconds(3)));
  BatchTimes later(folder, &log_);
  EXPECT_EQ(Known(later, "models/m/versions/1", key_), absl::Seconds(3));
  EXPECT_TRUE(later.Read("models/m/versions/2", key_).empty());
}

}  // namespace
}  // namespace sfmamba::repository
