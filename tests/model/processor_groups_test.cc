// Tests a model whose contexts run on groups of CPUs.

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "gtest/gtest.h"
#include "model/vision_model.h"
#include "tests/model/dtype_flag.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/run_model.h"

namespace sfmamba::model {
namespace {

constexpr int kImages = 3;

// Returns the CPUs on which the calling thread may run.
std::vector<int> Allowed() {
  std::vector<int> processors;
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

// Returns options with one CPU in each group. If there are fewer CPUs than
// groups, CPUs occur in several groups.
ModelOptions Groups(const std::vector<int>& threads) {
  const std::vector<int> all = Allowed();
  ModelOptions options;
  for (size_t i = 0; i < threads.size(); ++i) {
    options.processor_groups.push_back({{all[i % all.size()]}, threads[i]});
  }
  return options;
}

at::Tensor Images(int count = kImages) {
  return DeterministicImages({count, 3, kSmallHeight, kSmallWidth});
}

// Returns the answers as bytes, for comparison.
std::string Bytes(const std::vector<Result>& results) {
  std::string bytes;
  for (const Result& result : results) {
    const auto& answer = std::get<Classification>(result);
    for (const auto& values : {answer.logits, answer.embedding}) {
      bytes.append(reinterpret_cast<const char*>(values.data()),
                   values.size() * sizeof(values[0]));
    }
  }
  return bytes;
}

// Returns the answers of context `index` as bytes. The context runs on a
// separate thread.
std::string BytesOfContext(VisionModel& model, int index,
                           const at::Tensor& images) {
  std::string bytes;
  std::thread([&] {
    const auto context = model.MakeContext(index);
    ASSERT_TRUE(context.ok()) << context.status();
    const auto results = RunModel(**context, images);
    ASSERT_TRUE(results.ok()) << results.status();
    bytes = Bytes(*results);
  }).join();
  return bytes;
}

class ProcessorGroupsTest : public testing::TestWithParam<Precision> {
 protected:
  ProcessorGroupsTest() { config_.precision = GetParam(); }

  ModelConfig config_ = SmallModel();
};

TEST_P(ProcessorGroupsTest, AnAnswerHasTheSameBytesInEachContext) {
  const auto plain = MakeModel(config_);
  const auto several = MakeModel(config_, Groups({1, 2, 3}));
  for (const int count : {1, kImages}) {
    const std::string expected = BytesOfContext(*plain, 0, Images(count));
    ASSERT_FALSE(expected.empty());
    for (int i = 0; i < several->contexts(); ++i) {
      EXPECT_EQ(BytesOfContext(*several, i, Images(count)), expected) << i;
    }
  }
}

TEST_P(ProcessorGroupsTest, ContextsComputeAtOnce) {
  const auto model = MakeModel(config_, Groups({1, 2, 1}));
  const at::Tensor images = Images();
  const std::string expected = BytesOfContext(*model, 0, images);
  absl::Barrier* const begin = new absl::Barrier(model->contexts());
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < model->contexts(); ++i) {
    threads.emplace_back([&, i] {
      const auto context = model->MakeContext(i);
      ASSERT_TRUE(context.ok()) << context.status();
      if (begin->Block()) delete begin;
      for (int batch = 0; batch < 10; ++batch) {
        const auto results = RunModel(**context, images);
        ASSERT_TRUE(results.ok()) << results.status();
        if (Bytes(*results) == expected) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right.load(), 10 * model->contexts());
}

INSTANTIATE_TEST_SUITE_P(Precisions, ProcessorGroupsTest,
                         testing::Values(Precision::kFloat32,
                                         Precision::kBFloat16,
                                         Precision::kInt8),
                         [](const auto& info) {
                           return AbslUnparseFlag(info.param);
                         });

TEST(ProcessorGroupsOfAModelTest, EachGroupIsADeviceOfItsOwn) {
  const auto plain = MakeModel(SmallModel());
  EXPECT_EQ(plain->contexts(), 1);
  EXPECT_EQ(plain->context_device(0), "cpu");
  const auto several = MakeModel(SmallModel(), Groups({1, 1}));
  EXPECT_EQ(several->contexts(), 2);
  EXPECT_EQ(several->context_device(0), "cpu:0");
  EXPECT_EQ(several->context_device(1), "cpu:1");
  std::string expected = plain->device();
  expected.insert(expected.size() - 1, ", 2 contexts");
  EXPECT_EQ(several->device(), expected);
}

TEST(ProcessorGroupsOfAModelTest, AThreadIsBoundAsLongAsItsContextLives) {
  const std::vector<int> all = Allowed();
  const auto model = MakeModel(SmallModel(), Groups({1, 1, 1}));
  for (int i = 0; i < model->contexts(); ++i) {
    auto context = model->MakeContext(i);
    ASSERT_TRUE(context.ok()) << context.status();
    EXPECT_EQ(Allowed(), std::vector<int>({all[i % all.size()]}));
    context->reset();
    EXPECT_EQ(Allowed(), all);
  }
  const auto plain = MakeModel(SmallModel());
  const auto context = plain->MakeContext(0);
  EXPECT_EQ(Allowed(), all) << "one context binds nothing";
}

// The control group of a server may lose CPUs after the server's start.
TEST(ProcessorGroupsOfAModelTest, ProcessorsThatAreGoneCostSpeedOnly) {
  ModelOptions options;
  options.processor_groups = {{{1000}, 2}, {{1001, 1002}, 1}};
  const auto model = MakeModel(SmallModel(), options);
  const std::string expected =
      BytesOfContext(*MakeModel(SmallModel()), 0, Images());
  for (const int i : {0, 1}) {
    EXPECT_EQ(BytesOfContext(*model, i, Images()), expected);
  }
}

}  // namespace
}  // namespace sfmamba::model
