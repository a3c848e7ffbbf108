#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/host/topology.h"

namespace sfmamba::server {
namespace {

using Numbers = std::vector<int>;

// Returns the processors of a machine. NUMA node i has nodes[i] cores with
// `siblings` processors each.
std::vector<Processor> Machine(const std::vector<int>& nodes,
                               int siblings = 1) {
  std::vector<Processor> processors;
  int number = 0;
  for (size_t node = 0; node < nodes.size(); ++node) {
    for (int core = 0; core < nodes[node]; ++core) {
      const int first = number;
      for (int i = 0; i < siblings; ++i) {
        processors.push_back({number++, static_cast<int>(node), 0, first});
      }
    }
  }
  return processors;
}

// Returns the processors' numbers in each group that MakeGroups() makes.
std::vector<Numbers> Groups(const std::vector<Processor>& processors,
                            int contexts, int threads) {
  std::vector<Numbers> groups;
  for (const auto& group : MakeGroups(processors, contexts, threads)) {
    groups.push_back(group.processors);
  }
  return groups;
}

Numbers ThreadsOf(const std::vector<Processor>& processors, int contexts,
                  int threads) {
  Numbers result;
  for (const auto& group : MakeGroups(processors, contexts, threads)) {
    result.push_back(group.threads);
  }
  return result;
}

TEST(AutomaticContextsTest, OneUpTo16Threads) {
  for (const int threads : {-1, 0, 1, 2, 8, 16}) {
    EXPECT_EQ(AutomaticContexts(Machine({16}), threads), 1) << threads;
  }
  EXPECT_EQ(AutomaticContexts(Machine({8, 8}), 16), 1);
  EXPECT_EQ(AutomaticContexts(Machine({128}), 16), 1) << "a quota";
}

TEST(AutomaticContextsTest, NoneHasMoreThan16Threads) {
  EXPECT_EQ(AutomaticContexts(Machine({17}), 17), 2);
  EXPECT_EQ(AutomaticContexts(Machine({32}), 32), 2);
  EXPECT_EQ(AutomaticContexts(Machine({48}, 2), 96), 6);
  EXPECT_EQ(AutomaticContexts(Machine({96}), 96), 6);
}

TEST(AutomaticContextsTest, EachNodeHasTheSame) {
  EXPECT_EQ(AutomaticContexts(Machine({12, 12}), 24), 2);
  EXPECT_EQ(AutomaticContexts(Machine({32, 32}), 64), 4);
  EXPECT_EQ(AutomaticContexts(Machine({9, 9, 9, 9}), 36), 4);
  EXPECT_EQ(AutomaticContexts(Machine({20, 20}), 40), 4);
}

TEST(AutomaticContextsTest, WhatIsChosenIsNeverRefused) {
  for (const auto& machine : {std::vector<Processor>(), Machine({1}),
                              Machine({2}, 2), Machine(std::vector<int>(32, 1)),
                              Machine({64, 1}), Machine({128, 128}, 2)}) {
    for (const int threads : {1, 2, 16, 17, 33, 512, 1024}) {
      const int contexts = AutomaticContexts(machine, threads);
      EXPECT_EQ(CheckContexts(machine, contexts, threads), absl::OkStatus());
    }
  }
}

TEST(CheckContextsTest, RefusesWhatHasNoCoreOrNoThread) {
  EXPECT_EQ(CheckContexts(Machine({2}), 2, 2), absl::OkStatus());
  EXPECT_EQ(CheckContexts(Machine({2}), 1, 1), absl::OkStatus());
  EXPECT_EQ(CheckContexts(Machine({2}), 2, 64), absl::OkStatus());
  EXPECT_EQ(CheckContexts(Machine({2}), 3, 64).message(),
            "cpu_contexts: got 3, expected 1 to 2: there are 2 cores for 64 "
            "compute_threads");
  EXPECT_EQ(CheckContexts(Machine({1}, 2), 2, 2).message(),
            "cpu_contexts: got 2, expected 1 to 1: there are 1 core for 2 "
            "compute_threads");
  EXPECT_EQ(CheckContexts(Machine({8}), 4, 3).message(),
            "cpu_contexts: got 4, expected 1 to 3: there are 8 cores for 3 "
            "compute_threads");
  for (const int contexts : {0, -1}) {
    EXPECT_EQ(CheckContexts(Machine({8}), contexts, 8).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(CheckContexts({}, 1, 4), absl::OkStatus()) << "nothing is known";
  EXPECT_FALSE(CheckContexts({}, 2, 4).ok());
}

TEST(MakeGroupsTest, DividesCoresAndThreads) {
  EXPECT_EQ(Groups(Machine({2}), 2, 2), std::vector<Numbers>({{0}, {1}}));
  EXPECT_EQ(ThreadsOf(Machine({2}), 2, 2), Numbers({1, 1}));
  EXPECT_EQ(Groups(Machine({5}), 2, 5),
            std::vector<Numbers>({{0, 1}, {2, 3, 4}}));
  EXPECT_EQ(ThreadsOf(Machine({5}), 2, 5), Numbers({2, 3}));
}

TEST(MakeGroupsTest, NoCoreIsInTwoGroups) {
  EXPECT_EQ(Groups(Machine({3}, 2), 2, 6),
            std::vector<Numbers>({{0, 1}, {2, 3, 4, 5}}));
  EXPECT_EQ(ThreadsOf(Machine({3}, 2), 2, 6), Numbers({2, 4}));
}

TEST(MakeGroupsTest, AGroupStaysOnItsNode) {
  EXPECT_EQ(Groups(Machine({2, 2}), 2, 4),
            std::vector<Numbers>({{0, 1}, {2, 3}}));
  EXPECT_EQ(Groups(Machine({4, 1}), 3, 5),
            std::vector<Numbers>({{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(Groups(Machine({2, 2}), 3, 4),
            std::vector<Numbers>({{0}, {1}, {2, 3}}));
}

TEST(MakeGroupsTest, WithFewerGroupsThanNodesNodesAreJoined) {
  EXPECT_EQ(Groups(Machine({1, 1, 1, 1}), 2, 4),
            std::vector<Numbers>({{0, 1}, {2, 3}}));
}

TEST(MakeGroupsTest, AQuotaIsDividedToo) {
  EXPECT_EQ(ThreadsOf(Machine({64, 64}), 2, 20), Numbers({10, 10}));
  EXPECT_EQ(ThreadsOf(Machine({8}), 2, 3), Numbers({2, 1}));
  EXPECT_EQ(ThreadsOf(Machine({2}), 2, 5), Numbers({3, 2})) << "more threads";
}

// On any machine, each processor and each thread belongs to exactly one group.
TEST(MakeGroupsTest, NothingIsLost) {
  for (const auto& machine : {Machine({1}), Machine({7}), Machine({5, 3}, 2),
                              Machine({1, 30, 2}), Machine({64, 64}, 2)}) {
    for (int contexts = 1; contexts <= 40; ++contexts) {
      for (const int threads : {1, 5, 16, 64, 256}) {
        if (!CheckContexts(machine, contexts, threads).ok()) continue;
        const auto groups = MakeGroups(machine, contexts, threads);
        ASSERT_EQ(groups.size(), contexts);
        std::multiset<int> numbers;
        int sum = 0;
        for (const auto& group : groups) {
          EXPECT_FALSE(group.processors.empty());
          EXPECT_GE(group.threads, 1);
          numbers.insert(group.processors.begin(), group.processors.end());
          sum += group.threads;
        }
        EXPECT_EQ(sum, threads);
        Numbers all(machine.size());
        std::iota(all.begin(), all.end(), 0);
        EXPECT_EQ(numbers, std::multiset<int>(all.begin(), all.end()));
      }
    }
  }
}

}  // namespace
}  // namespace sfmamba::server
