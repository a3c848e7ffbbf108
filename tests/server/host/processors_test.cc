#include "server/host/processors.h"

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

// Creates folders that look like /proc and /sys/fs/cgroup.
class CgroupTest : public testing::Test {
 protected:
  CgroupTest()
      : folder_(testing::TempDir() + "/" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
  }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<double> Processors() {
    return CgroupProcessors(folder_ + "/cgroup", folder_ + "/fs");
  }

  const std::string folder_;
};

TEST_F(CgroupTest, AContainerOfVersion2SeesItsOwnQuota) {
  Write("cgroup", "0::/\n");
  Write("fs/cpu.max", "400000 100000\n");
  EXPECT_EQ(Processors(), 4);
}

TEST_F(CgroupTest, AQuotaOfLessThanOneProcessorLeavesOneThread) {
  Write("cgroup", "0::/\n");
  Write("fs/cpu.max", "50000 100000\n");
  EXPECT_EQ(UsableProcessors(folder_ + "/cgroup", folder_ + "/fs"), 1);
}

TEST_F(CgroupTest, OfVersion2TheSmallestQuotaOnTheWayUpCounts) {
  Write("cgroup", "0::/kubepods/pod/box\n");
  Write("fs/kubepods/cpu.max", "max 100000\n");
  Write("fs/kubepods/pod/cpu.max", "150000 100000\n");
  Write("fs/kubepods/pod/box/cpu.max", "300000 100000\n");
  EXPECT_EQ(Processors(), 1.5);
}

TEST_F(CgroupTest, NoQuotaIsNone) {
  Write("cgroup", "0::/a\n");
  Write("fs/a/cpu.max", "max 100000\n");
  EXPECT_EQ(Processors(), std::nullopt);
  Write("fs/a/cpu.max", "200000 100000\n");
  EXPECT_EQ(Processors(), 2);
}

TEST_F(CgroupTest, Version1HasAFolderForTheController) {
  Write("cgroup",
        "12:memory:/docker/a\n4:cpu,cpuacct:/docker/a\n1:cpuset:/docker/a\n");
  Write("fs/cpu,cpuacct/docker/a/cpu.cfs_quota_us", "250000\n");
  Write("fs/cpu,cpuacct/docker/a/cpu.cfs_period_us", "100000\n");
  Write("fs/memory/docker/a/cpu.cfs_quota_us", "1\n");
  EXPECT_EQ(Processors(), 2.5);
}

// /proc states the group's path on the host. In the container, the group's
// files are at the root of the folder "cpu".
TEST_F(CgroupTest, AContainerOfVersion1SeesItsOwnQuota) {
  Write("cgroup", "4:cpuacct,cpu:/docker/a\n0::/docker/a\n");
  Write("fs/cpu/cpu.cfs_quota_us", "50000\n");
  Write("fs/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Processors(), 0.5);
}

TEST_F(CgroupTest, Version1WithoutQuotaIsNone) {
  Write("cgroup", "4:cpu,cpuacct:/\n");
  Write("fs/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  Write("fs/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Processors(), std::nullopt);
}

TEST_F(CgroupTest, Version1WithHalfOfItsFilesIsNone) {
  Write("cgroup", "4:cpu:/\n");
  Write("fs/cpu/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(Processors(), std::nullopt);
  Write("fs/cpu/cpu.cfs_quota_us", "");
  Write("fs/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Processors(), std::nullopt);
}

TEST_F(CgroupTest, NothingToReadIsNone) {
  EXPECT_EQ(Processors(), std::nullopt);
  for (const char* text : {"", "nonsense\n", "0::\n", "0::x\n", "::/\n"}) {
    Write("cgroup", text);
    EXPECT_EQ(Processors(), std::nullopt) << text;
  }
  Write("cgroup", "0::/\n");
  for (const char* text : {"", "x y\n", "100000\n", "1 0\n", "-5 100000\n"}) {
    Write("fs/cpu.max", text);
    EXPECT_EQ(Processors(), std::nullopt) << text;
  }
}

TEST(UsableProcessorsTest, AreNoMoreThanTheAffinityAllows) {
  EXPECT_GE(UsableProcessors(), 1);
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  EXPECT_LE(UsableProcessors(), CPU_COUNT(&allowed));
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  int usable = 0;
  std::thread pinned([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    usable = UsableProcessors();
  });
  Join(pinned, "a thread on one processor");
  EXPECT_EQ(usable, 1);
}

}  // namespace
}  // namespace sfmamba::server
