#include "server/observability/sharded_histogram.h"

#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "prometheus/histogram.h"

namespace sfmamba::observability {
namespace {

TEST(ShardedHistogramTest, CountsAsPrometheusOwnDoes) {
  const std::vector<double> bounds = {.5, 1, 10};
  ShardedHistogram sharded(bounds);
  prometheus::Histogram whole(bounds);
  for (double value : {0., .5, .75, 1., 1.5, 10., 11., -1., 1e9}) {
    sharded.Observe(value);
    whole.Observe(value);
  }
  const auto got = sharded.Collect().histogram;
  const auto expected = whole.Collect().histogram;
  EXPECT_EQ(got.sample_count, expected.sample_count);
  EXPECT_EQ(got.sample_sum, expected.sample_sum);
  ASSERT_EQ(got.bucket.size(), expected.bucket.size());
  for (size_t i = 0; i < got.bucket.size(); ++i) {
    EXPECT_EQ(got.bucket[i].cumulative_count,
              expected.bucket[i].cumulative_count);
    EXPECT_EQ(got.bucket[i].upper_bound, expected.bucket[i].upper_bound);
  }
}

TEST(ShardedHistogramTest, NothingIsLostAmongThreads) {
  constexpr int kThreads = 24, kValues = 10000;
  ShardedHistogram histogram({1, 2});
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&histogram, i] {
      for (int j = 0; j < kValues; ++j) histogram.Observe(i % 3 + 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto got = histogram.Collect().histogram;
  EXPECT_EQ(got.sample_count, kThreads * kValues);
  EXPECT_EQ(got.sample_sum, 2. * kThreads * kValues);
  EXPECT_EQ(got.bucket[0].cumulative_count, kThreads / 3 * kValues);
  EXPECT_EQ(got.bucket[1].cumulative_count, kThreads / 3 * 2 * kValues);
}

TEST(HistogramFamilyTest, EqualLabelsShareAHistogram) {
  HistogramFamily family("name", "help");
  ShardedHistogram& a = family.Add({{"model", "a"}}, {1});
  EXPECT_EQ(&family.Add({{"model", "a"}}, {1}), &a);
  ShardedHistogram& b = family.Add({{"model", "b"}}, {1});
  EXPECT_NE(&a, &b);
  b.Observe(3);
  family.Remove(&a);
  const prometheus::MetricFamily got = family.Collect();
  EXPECT_EQ(got.name, "name");
  ASSERT_EQ(got.metric.size(), 1u);
  EXPECT_EQ(got.metric[0].label[0].value, "b");
  EXPECT_EQ(got.metric[0].histogram.sample_sum, 3);
}

}  // namespace
}  // namespace sfmamba::observability
