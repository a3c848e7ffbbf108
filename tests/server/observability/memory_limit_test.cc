#include "server/observability/memory_limit.h"

#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace sfmamba::observability {
namespace {

namespace fs = std::filesystem;

// Creates a root folder with files like those in /proc and /sys.
class MemoryLimitTest : public testing::Test {
 protected:
  MemoryLimitTest()
      : root_(testing::TempDir() + "/memory_limit_" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    Write("/proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n");
  }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  const std::string root_;
};

TEST_F(MemoryLimitTest, WithoutAGroupItIsTheMachines) {
  EXPECT_EQ(MemoryLimit(root_), 16 << 20);
}

TEST_F(MemoryLimitTest, IsTheSmallestOfTheGroupsAbove) {
  Write("/proc/self/cgroup", "0::/pods/pod1/server\n");
  Write("/sys/fs/cgroup/pods/pod1/server/memory.max", "max\n");
  Write("/sys/fs/cgroup/pods/pod1/memory.max", "4000000\n");
  Write("/sys/fs/cgroup/pods/memory.max", "5000000\n");
  EXPECT_EQ(MemoryLimit(root_), 4000000);
}

TEST_F(MemoryLimitTest, AContainerSeesItsGroupAsTheRoot) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "4000000\n");
  EXPECT_EQ(MemoryLimit(root_), 4000000);
}

TEST_F(MemoryLimitTest, APathFromOutsideTheContainerEndsAtTheRootToo) {
  Write("/proc/self/cgroup", "0::/../pod1\n");
  Write("/sys/fs/cgroup/memory.max", "4000000\n");
  EXPECT_EQ(MemoryLimit(root_), 4000000);
}

TEST_F(MemoryLimitTest, ReadsVersionOne) {
  Write("/proc/self/cgroup", "9:cpu,cpuacct:/pod1\n7:memory:/pod1\n");
  Write("/sys/fs/cgroup/memory/pod1/memory.limit_in_bytes", "4000000\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(MemoryLimit(root_), 4000000);
}

TEST_F(MemoryLimitTest, ALimitBeyondTheMachineIsNone) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "99999999999\n");
  EXPECT_EQ(MemoryLimit(root_), 16 << 20);
}

TEST_F(MemoryLimitTest, AGroupsLimitHoldsThoughTheMachinesIsUnknown) {
  Write("/proc/meminfo", "MemFree: 1 kB\n");
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "4000000\n");
  EXPECT_EQ(MemoryLimit(root_), 4000000);
}

TEST_F(MemoryLimitTest, IsZeroIfNothingIsKnown) {
  EXPECT_EQ(MemoryLimit(root_ + "/nothing"), 0);
}

TEST_F(MemoryLimitTest, WhatIsFreeIsLessThanTheLimitAndThanTheMachineHas) {
  Write("/proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable: 2000 kB\n");
  EXPECT_EQ(FreeMemory(0, root_), 2000 << 10);
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "1000000000\n");
  EXPECT_EQ(FreeMemory(0, root_), 2000 << 10);
  Write("/proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable: 9999999 kB\n");
  EXPECT_LT(FreeMemory(0, root_), 1000000000);
  EXPECT_GT(FreeMemory(0, root_), 0);
  // The process may grow between the two calls.
  EXPECT_NEAR(FreeMemory(0, root_) - FreeMemory(64 << 20, root_), 64 << 20,
              8 << 20);
}

TEST(ResidentMemoryTest, IsWhatTheProcessHolds) {
  constexpr int64_t kBytes = 64 << 20;
  const std::string held(kBytes, 'x');
  std::string untouched;
  // This takes only virtual memory.
  untouched.reserve(4 * kBytes);
  rusage used = {};
  ASSERT_EQ(getrusage(RUSAGE_SELF, &used), 0);
  EXPECT_GT(ResidentMemory(), kBytes);
  // ResidentMemory() may be a little larger than the earlier maximum, because
  // the kernel counts the newest pages of a thread with a delay.
  EXPECT_LT(ResidentMemory(), used.ru_maxrss * 1024 + kBytes);
}

}  // namespace
}  // namespace sfmamba::observability
