#include "server/host/topology.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

using Numbers = std::vector<int>;

// Creates a folder that looks like /sys/devices/system.
class TopologyTest : public testing::Test {
 protected:
  TopologyTest()
      : root_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(root_);
  }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  // Writes the files of the processor `number`. `core` lists the processors of
  // its core, which share its caches of levels 1 and 2. `cache` lists the
  // processors that share its cache of level 3. The entry of level 3 stands
  // between the two other entries, so its position does not show its level.
  void WriteProcessor(int number, const std::string& core,
                      const std::string& cache) {
    const std::string folder = absl::StrCat("cpu/cpu", number);
    Write(folder + "/topology/core_cpus_list", core);
    Write(folder + "/cache/index0/level", "1");
    Write(folder + "/cache/index0/shared_cpu_list", core);
    Write(folder + "/cache/index1/level", "3");
    Write(folder + "/cache/index1/shared_cpu_list", cache);
    Write(folder + "/cache/index2/level", "2");
    Write(folder + "/cache/index2/shared_cpu_list", core);
  }
  Numbers Order(const Numbers& allowed) {
    Numbers numbers;
    for (const Processor& processor : ReadTopology(allowed, root_)) {
      numbers.push_back(processor.number);
    }
    return numbers;
  }

  const std::string root_;
};

TEST_F(TopologyTest, NeighboursStandSideBySide) {
  // The machine has two nodes, and the processors of the nodes alternate. Each
  // core has two processors.
  Write("node/node0/cpulist", "0,2,4,6");
  Write("node/node1/cpulist", "1,3,5,7");
  for (const int node : {0, 1}) {
    for (const int first : {node, node + 2}) {
      for (const int number : {first, first + 4}) {
        WriteProcessor(number, absl::StrCat(first, ",", first + 4),
                       absl::StrCat(first, ",", first + 4));
      }
    }
  }
  EXPECT_EQ(Order({0, 1, 2, 3, 4, 5, 6, 7}), Numbers({0, 4, 2, 6, 1, 5, 3, 7}));
  const Processor last = ReadTopology({7}, root_)[0];
  EXPECT_EQ(last.node, 1);
  EXPECT_EQ(last.core, 3);
  EXPECT_EQ(last.cache, 3);
  EXPECT_EQ(ReadTopology({4}, root_)[0].core, 0);
}

TEST_F(TopologyTest, ThoseOfACacheStandTogether) {
  Write("node/node0/cpulist", "0-3");
  WriteProcessor(0, "0", "0,2");
  WriteProcessor(1, "1", "1,3");
  WriteProcessor(2, "2", "0,2");
  WriteProcessor(3, "3", "1,3");
  EXPECT_EQ(Order({0, 1, 2, 3}), Numbers({0, 2, 1, 3}));
}

TEST_F(TopologyTest, OlderKernelsCallACoreOtherwise) {
  Write("cpu/cpu1/topology/thread_siblings_list", "0-1");
  EXPECT_EQ(ReadTopology({1}, root_)[0].core, 0);
}

TEST_F(TopologyTest, OnlyThoseThatAreAllowedAreTold) {
  Write("node/node0/cpulist", "0-3");
  EXPECT_EQ(Order({3, 1}), Numbers({1, 3}));
  EXPECT_TRUE(Order({}).empty());
}

TEST_F(TopologyTest, WhatCannotBeReadIsOneNodeOfLoneCores) {
  Write("node/node0/cpulist", "no list");
  Write("node/nodeX/cpulist", "0-9");
  Write("node/node5", "no folder");
  Write("cpu/cpu8/topology/core_cpus_list", "5-1");
  Write("cpu/cpu8/cache/index0/level", "-7");
  for (const Processor& processor : ReadTopology({8, 9}, root_)) {
    EXPECT_EQ(processor.node, 0);
    EXPECT_EQ(processor.cache, 0);
    EXPECT_EQ(processor.core, processor.number);
  }
}

TEST(ParseProcessorListTest, ReadsNumbersAndRanges) {
  EXPECT_EQ(ParseProcessorList("5"), Numbers({5}));
  EXPECT_EQ(ParseProcessorList("0-3,8,10-11"),
            Numbers({0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(ParseProcessorList(" 0-1\n"), Numbers({0, 1}));
  EXPECT_EQ(ParseProcessorList("65535"), Numbers({65535}));
  EXPECT_TRUE(ParseProcessorList("65536").empty());
}

TEST(ParseProcessorListTest, WhatIsMalformedIsNone) {
  for (const char* list :
       {"", ",", "1,", "-", "1-", "-1", "3-1", "0,3-1", "a", "0-1-2", "1 2",
        "0x1", "99999", "0-4294967296", "0-99999999999999999999"}) {
    EXPECT_TRUE(ParseProcessorList(list).empty()) << list;
  }
}

TEST(AllowedTopologyTest, AreThisProcesss) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  const std::vector<Processor> processors = AllowedTopology();
  EXPECT_EQ(processors.size(), CPU_COUNT(&set));
  for (const Processor& processor : processors) {
    EXPECT_TRUE(CPU_ISSET(processor.number, &set));
  }
}

}  // namespace
}  // namespace sfmamba::server
