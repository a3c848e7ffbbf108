#include "tests/testing/patience.h"

#include "gtest/gtest.h"

namespace sfmamba {
namespace {

TEST(PatienceTest, WhatComesInTimeIsWaitedFor) {
  absl::Notification notification;
  absl::BlockingCounter counter(1);
  std::thread thread([&] {
    notification.Notify();
    counter.DecrementCount();
  });
  WaitFor(notification, "the notification");
  WaitFor(counter, "the counter");
  Join(thread, "the thread");
  int asked = 0;
  WaitUntil([&asked] { return ++asked == 3; }, "the third time");
  EXPECT_EQ(asked, 3);
}

TEST(PatienceDeathTest, WhatDoesNotComeIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        TimeLimit limit("the moon", absl::Milliseconds(1));
        absl::Notification().WaitForNotification();
      },
      "Waited 1ms in vain for the moon");
}

}  // namespace
}  // namespace sfmamba
