// Tests the bounds of histograms and the series that exist when a server
// starts.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/observability/metrics.h"
#include "tests/server/observability/metric_values.h"

namespace sfmamba::observability {
namespace {

// Returns the upper bounds of a histogram in `metrics`, without infinity.
std::vector<double> BoundsOf(const Metrics& metrics, const std::string& name) {
  std::vector<double> bounds;
  for (const prometheus::MetricFamily& family : metrics.Collect()) {
    if (family.name != name || family.metric.empty()) continue;
    for (const auto& bucket : family.metric[0].histogram.bucket) {
      bounds.push_back(bucket.upper_bound);
    }
    bounds.pop_back();
  }
  return bounds;
}

// Dashboards and alerts of all installations depend on these bounds.
TEST(MetricFamiliesTest, HistogramsHaveTheirBounds) {
  Metrics metrics(BuildInfo{});
  const auto model = metrics.Model("m", "1");
  metrics.ImageDecoded("jpeg", 1);
  model->BatchPredicted(absl::Seconds(1), absl::Seconds(1));
  model->LoadDone(true, absl::Seconds(1));
  using Bounds = std::vector<double>;
  EXPECT_EQ(BoundsOf(metrics, "sfmamba_batch_items"),
            (Bounds{1, 2, 4, 8, 16, 32, 64, 128}));
  EXPECT_EQ(BoundsOf(metrics, "sfmamba_batch_fold_occupancy_ratio"),
            (Bounds{.1, .2, .3, .4, .5, .6, .7, .8, .9, 1}));
  EXPECT_EQ(BoundsOf(metrics, "sfmamba_cost_model_error_ratio"),
            (Bounds{.5, .7, .8, .9, 1, 1.1, 1.25, 1.5, 2, 4}));
  EXPECT_EQ(BoundsOf(metrics, "sfmamba_model_load_duration_seconds"),
            (Bounds{.1, .25, .5, 1, 2.5, 5, 10, 25, 50, 100, 250}));
  const Bounds pixels = BoundsOf(metrics, "sfmamba_image_pixels");
  ASSERT_EQ(pixels.size(), 11u);
  EXPECT_EQ(pixels.front(), 64 << 10);
  EXPECT_EQ(pixels.back(), 64 << 20);
  const Bounds bytes = BoundsOf(metrics, "sfmamba_request_bytes");
  ASSERT_EQ(bytes.size(), 19u);
  EXPECT_EQ(bytes.front(), 256);
  EXPECT_EQ(bytes.back(), 64 << 20) << "the largest message, by default";
}

TEST(MetricFamiliesTest, AVersionThatIsLoadedAnewBeginsAnew) {
  Metrics metrics(BuildInfo{});
  metrics.Model("m", "1")->statistics().RequestFailed(absl::Seconds(1));
  EXPECT_EQ(metrics.Model("m", "1")->statistics().Get().fail.count, 0);
}

TEST(MetricFamiliesTest, EachSaysWhatItIs) {
  for (const auto& family : Metrics(BuildInfo{}).Collect()) {
    EXPECT_NE(family.help, "") << family.name;
  }
}

TEST(MetricFamiliesTest, AModelsSeriesAreThereBeforeItsFirstBatch) {
  Metrics metrics(BuildInfo{});
  const auto model = metrics.Model("m", "1");
  auto values = Values(metrics);
  for (const char* name :
       {"batch_items", "batch_fold_occupancy_ratio", "padding_items_total",
        "graph_capture_failures_total", "in_flight_batches"}) {
    const std::string series = absl::StrCat("sfmamba_", name, "{model=m}");
    EXPECT_EQ(values.count(series), 1u) << series;
    EXPECT_EQ(values[series], 0) << series;
  }
}

}  // namespace
}  // namespace sfmamba::observability
