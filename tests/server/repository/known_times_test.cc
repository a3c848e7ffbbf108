#include "server/repository/known_times.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sfmamba::repository {
namespace {

// Returns the times of one batch.
KnownTimes::Times Times(int milliseconds) {
  const absl::Duration time = absl::Milliseconds(milliseconds);
  return {{{32, 32}, 1, time, time}};
}

// Returns the known median in milliseconds, or -1 if none is known.
int Known(const KnownTimes& known, const std::string& key) {
  const KnownTimes::Times times = known.Get(key);
  return times.empty() ? -1 : times[0].median / absl::Milliseconds(1);
}

TEST(KnownTimesTest, KnowsWhatWasSetLast) {
  KnownTimes known;
  EXPECT_EQ(Known(known, "key"), -1);
  known.Set("key", Times(1));
  EXPECT_EQ(Known(known, "key"), 1);
  EXPECT_EQ(Known(known, "another"), -1);
  known.Set("key", Times(2));
  EXPECT_EQ(Known(known, "key"), 2);
}

TEST(KnownTimesTest, WhatIsSetAgainReplacesNothingElse) {
  KnownTimes known;
  known.Set("other key", Times(7));
  for (size_t i = 0; i < KnownTimes::kMostKeys; ++i) known.Set("key", Times(i));
  EXPECT_EQ(Known(known, "other key"), 7);
}

TEST(KnownTimesTest, ForgetsWhatWasSetLongAgo) {
  KnownTimes known;
  const int keys = 3 * KnownTimes::kMostKeys;
  for (int i = 0; i < keys; ++i) {
    known.Set(absl::StrCat(i), Times(i));
    // Key "0" is set again from time to time.
    if (i % 10 == 0) known.Set("0", Times(0));
  }
  EXPECT_EQ(Known(known, "0"), 0);
  EXPECT_EQ(Known(known, "1"), -1);
  EXPECT_EQ(Known(known, absl::StrCat(keys - 1)), keys - 1);
}

}  // namespace
}  // namespace sfmamba::repository
