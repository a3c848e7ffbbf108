#include "tests/model/launch_plan.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/testing.h"

namespace sfmamba::model {
namespace {

using testing::HasSubstr;

constexpr int kImages = 128;

ModelConfig Bf16(const char* variant) {
  ModelConfig config = *VariantConfig(variant);
  config.precision = Precision::kBFloat16;
  return config;
}

int Count(const std::vector<Launch>& launches, const std::string& group) {
  return std::count_if(
      launches.begin(), launches.end(),
      [&](const Launch& launch) { return launch.group == group; });
}

TEST(LaunchPlanTest, ThePageShowsWhatTheEngineLaunches) {
  std::ostringstream page;
  page << std::ifstream("docs/gpu_launches.md").rdbuf();
  for (const char* variant : {"sf_mamba_t", "sf_mamba_s", "sf_mamba_b"}) {
    const std::vector<Launch> launches = LaunchesOf(Bf16(variant), kImages);
    EXPECT_THAT(page.str(), HasSubstr(LaunchTable(launches))) << variant;
    EXPECT_THAT(page.str(), HasSubstr(absl::StrFormat(
                                ": %.2f ms", ModelledMilliseconds(launches))))
        << variant;
  }
}

TEST(LaunchPlanTest, VariantsKeepToTheirTimes) {
  EXPECT_LE(ModelledMilliseconds(LaunchesOf(Bf16("sf_mamba_t"), kImages)),
            3.62);
  EXPECT_LE(ModelledMilliseconds(LaunchesOf(Bf16("sf_mamba_s"), kImages)),
            5.62);
  EXPECT_LE(ModelledMilliseconds(LaunchesOf(Bf16("sf_mamba_b"), kImages)),
            9.62);
}

TEST(LaunchPlanTest, ATokenStageCutsItsWindowsInOneLaunchAndCopiesNoneBack) {
  for (const char* variant : {"sf_mamba_t", "sf_mamba_s", "sf_mamba_b"}) {
    // Stages 3 and 4 each have one launch that cuts windows. A third launch of
    // this group comes before the head.
    EXPECT_EQ(
        Count(LaunchesOf(Bf16(variant), kImages), "windows, means, tokens"), 3);
  }
}

TEST(LaunchPlanTest, AMambaBlockIsNineLaunchesAndAnAttentionBlockSeven) {
  ModelConfig config = Bf16("sf_mamba_t");
  const size_t launches = LaunchesOf(config, kImages).size();
  config.backbone.depths[2] += 2;  // Adds a block of each kind.
  EXPECT_EQ(LaunchesOf(config, kImages).size() - launches, 9 + 7);
}

TEST(LaunchPlanTest, CountsTheNetworksArithmetic) {
  const std::vector<Launch> launches = LaunchesOf(Bf16("sf_mamba_t"), 1);
  double flops = 0;
  for (const Launch& launch : launches) flops += launch.flops;
  // The network has 4.6 G multiply-adds. This includes the additional cost of
  // computing the projections x_proj and dt_proj in one matrix product.
  EXPECT_NEAR(flops / 2e9, 4.6, 0.1);
  EXPECT_EQ(Count(launches, "selective scan"), 6);
  EXPECT_EQ(Count(launches, "attention"), 6);
  EXPECT_EQ(Count(launches, "stem"), 1);
}

TEST(LaunchPlanTest, WithTheExactGeluEachMlpHasAPassMore) {
  ModelConfig config = Bf16("sf_mamba_t");
  config.precision = Precision::kFloat32;  // In fp32, GELU is always exact.
  EXPECT_EQ(Count(LaunchesOf(config, 1), "GELU of the MLPs"), 12);
}

// cuDNN makes a plan for each convolution and batch size. When cuDNN also
// computed the depthwise convolutions, the default classifier was not ready
// after 90 s on an H200.
TEST(LaunchPlanTest, TheDefaultClassifierConvolvesWithoutPlans) {
  const std::vector<Launch> launches = LaunchesOf(LiteStride32Model(), 1);
  EXPECT_EQ(Count(launches, "depthwise convolutions"), 12);
  EXPECT_EQ(Count(launches, "convolutions"), 0);
}

// For attention, a library makes a plan for each shape.
TEST(LaunchPlanTest, PicturesOfManySizesHaveFewShapesOfAttention) {
  const ModelConfig config =
      *VariantConfig("sf_mamba_t", VisionTask::kDetection);
  std::set<std::pair<double, double>> shapes;
  int sizes = 0;
  for (int height = 480; height <= 1344; height += 32) {
    for (const int width : {800, 1088, 1344}) {
      ++sizes;
      for (const Launch& launch : BackboneLaunches(config, 1, height, width)) {
        if (launch.kind == LaunchKind::kAttention) {
          shapes.insert({launch.flops, launch.bytes});
        }
      }
    }
  }
  std::printf("%zu shapes of %d sizes\n", shapes.size(), sizes);
  EXPECT_LE(shapes.size(), 24);
}

// The expected times of one launch of each kind are computed by hand.
TEST(LaunchModelTest, TakesTheLongerOfMemoryAndArithmetic) {
  Launch launch;
  launch.bytes = 3.65e6;
  EXPECT_DOUBLE_EQ(ModelledMicroseconds(launch), 1.2 + 1);
  launch.kind = LaunchKind::kGemm;
  launch.flops = 1200e6;
  EXPECT_DOUBLE_EQ(ModelledMicroseconds(launch), 1.2 + 2);
  launch.kind = LaunchKind::kConvolution;
  launch.channels = 80;
  EXPECT_DOUBLE_EQ(ModelledMicroseconds(launch), 1.2 + 1200 / 280.0);
  launch.channels = 512;
  EXPECT_DOUBLE_EQ(ModelledMicroseconds(launch), 1.2 + 1200 / 550.0);
  launch.kind = LaunchKind::kAttention;
  EXPECT_DOUBLE_EQ(ModelledMicroseconds(launch), 1.2 + 3.65 / 1.2);
}

}  // namespace
}  // namespace sfmamba::model
