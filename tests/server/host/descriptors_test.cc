#include "server/host/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

TEST(FillStandardDescriptorsTest, NothingElseGetsTheNumberOfAClosedOne) {
  const int kept = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  FillStandardDescriptors();
  const int next = open("/dev/null", O_RDONLY);
  EXPECT_GT(next, STDERR_FILENO);
  char byte;
  EXPECT_EQ(read(STDIN_FILENO, &byte, 1), 0) << "it is empty";
  close(next);
  dup2(kept, STDIN_FILENO);
  close(kept);
}

TEST(RaiseDescriptorLimitTest, RaisesItToTheHardLimit) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit lower = {100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &lower), 0);
  EXPECT_EQ(DescriptorLimit(), 100);
  RaiseDescriptorLimit();
  EXPECT_EQ(DescriptorLimit(),
            std::min<rlim_t>(before.rlim_max, std::numeric_limits<int>::max()));
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(FillStandardDescriptorsTest, OpenOnesAreLeft) {
  const int before = open("/dev/null", O_RDONLY);
  close(before);
  FillStandardDescriptors();
  const int after = open("/dev/null", O_RDONLY);
  EXPECT_EQ(after, before) << "none is lost";
  close(after);
}

}  // namespace
}  // namespace sfmamba::server
