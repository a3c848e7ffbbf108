// Compares detectors and segmenters on the emulated device with the CPU's
// engine. Also tests the normalization of images there.
#include <cmath>
#include <memory>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/full.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "model/engine/network.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/cuda/cuda_implementation.h"
#include "model/ops/device_ops.h"
#include "model/tuning/scan_plan_chooser.h"
#include "model/weights/random_weights.h"
#include "tests/model/emulated_device.h"
#include "tests/model/implementations.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/line_masks.h"

namespace sfmamba::model {
namespace {

constexpr int kHeight = 64, kWidth = 96;

ModelConfig SmallDense(VisionTask task) {
  ModelConfig config = *VariantConfig("custom", task);
  config.backbone = SmallModel().backbone;
  config.backbone.windows = {8, 4};
  config.backbone.output_norms = true;
  config.num_classes = 6;
  config.segmentation_channels = 16;
  config.detector.channels = 16;
  config.detector.fc_width = 32;
  config.detector.rpn_candidates = 100;
  config.detector.proposals = 24;
  config.detector.max_detections = 8;
  config.image_size = kWidth;
  return config;
}

std::vector<heads::ImageInfo> Infos(const PredictionOptions& options,
                                    int count) {
  heads::ImageInfo info;
  info.height = kHeight - 4;  // The rest is padding.
  info.width = kWidth - 6;
  info.original_height = 3 * kHeight / 2;
  info.original_width = 3 * kWidth / 2;
  info.options = options;
  return std::vector<heads::ImageInfo>(count, info);
}

std::vector<Result> RunNetwork(const ModelConfig& config,
                               const at::Tensor& images,
                               const PredictionOptions& options,
                               const ops::Implementation& implementation) {
  const c10::InferenceMode inference;
  weights::StateDict weights(weights::MakeRandomWeights(/*seed=*/1));
  const engine::Network network(config, weights.root(), implementation);
  return network.Forward(images.contiguous(at::MemoryFormat::ChannelsLast),
                         /*fold_rows=*/0, Infos(options, images.size(0)));
}

std::vector<Result> OnDevice(const ModelConfig& config,
                             const at::Tensor& images,
                             const PredictionOptions& options,
                             Precision precision = Precision::kFloat32) {
  const tuning::ScanPlanChooser chooser({"some GPU", 132, "some build"},
                                        std::nullopt,
                                        /*deterministic=*/false);
  return RunNetwork(
      config, images, options,
      ops::CudaImplementation(EmulatedOps(), at::kCPU, {precision, &chooser}));
}
std::vector<Result> OnDevice(const ModelConfig& config,
                             const at::Tensor& images,
                             Precision precision = Precision::kFloat32) {
  return OnDevice(config, images, AskForAll(config.task), precision);
}

std::vector<Result> OnCpu(const ModelConfig& config, const at::Tensor& images,
                          const PredictionOptions& options) {
  return RunNetwork(config, images, options, Cpu());
}
std::vector<Result> OnCpu(const ModelConfig& config, const at::Tensor& images) {
  return OnCpu(config, images, AskForAll(config.task));
}

void ExpectClose(const Box& a, const Box& b) {
  EXPECT_NEAR(a.x1, b.x1, 0.05);
  EXPECT_NEAR(a.y1, b.y1, 0.05);
  EXPECT_NEAR(a.x2, b.x2, 0.05);
  EXPECT_NEAR(a.y2, b.y2, 0.05);
}

// Returns the fraction of pixels in which two pictures differ.
template <typename T>
double Differing(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size() || a.empty()) return 1;
  double differing = 0;
  for (size_t i = 0; i < a.size(); ++i) differing += a[i] != b[i];
  return differing / a.size();
}

TEST(DeviceDenseTest, ADetectorAgreesWithTheCpu) {
  const ModelConfig config = SmallDense(VisionTask::kDetection);
  const at::Tensor images = DeterministicImages({2, 3, kHeight, kWidth});
  const std::vector<Result> expected = OnCpu(config, images);
  const std::vector<Result> results = OnDevice(config, images);
  ASSERT_EQ(results.size(), 2);
  for (int i = 0; i < 2; ++i) {
    const auto& a = std::get<Detections>(results[i]);
    const auto& b = std::get<Detections>(expected[i]);
    EXPECT_TRUE(a.finite);
    ASSERT_EQ(a.detections.size(), b.detections.size());
    EXPECT_GT(a.detections.size(), 0);
    for (size_t k = 0; k < a.detections.size(); ++k) {
      const Detection &own = a.detections[k], &other = b.detections[k];
      EXPECT_EQ(own.class_id, other.class_id);
      EXPECT_NEAR(own.score, other.score, 1e-4);
      ExpectClose(own.box, other.box);
      const base::Mask own_mask = PixelsOf(*own.mask);
      const base::Mask other_mask = PixelsOf(*other.mask);
      EXPECT_NEAR(own_mask.width, other_mask.width, 1);
      if (own_mask.data.size() == other_mask.data.size()) {
        EXPECT_LE(Differing(own_mask.data, other_mask.data), 0.01);
      }
    }
  }
}

TEST(DeviceDenseTest, ASegmentersLogitsAreTheCpus) {
  const ModelConfig config = SmallDense(VisionTask::kSegmentation);
  const at::Tensor images = DeterministicImages({2, 3, kHeight, kWidth});
  SegmentationOptions options;
  options.logits = true;
  const std::vector<Result> expected = OnCpu(config, images, options);
  const std::vector<Result> results = OnDevice(config, images, options);
  ASSERT_EQ(results.size(), 2);
  for (int i = 0; i < 2; ++i) {
    const auto& a = std::get<Segmentation>(results[i]);
    const auto& b = std::get<Segmentation>(expected[i]);
    EXPECT_EQ(a.height, kHeight / 4);
    EXPECT_EQ(a.width, kWidth / 4);
    ASSERT_EQ(a.logits.size(), a.height * a.width * config.num_classes);
    ASSERT_EQ(a.logits.size(), b.logits.size());
    for (size_t k = 0; k < a.logits.size(); ++k) {
      ASSERT_NEAR(a.logits[k], b.logits[k], 1e-3 * (1 + std::abs(b.logits[k])));
    }
  }
}

TEST(DeviceDenseTest, ASegmenterAgreesWithTheCpu) {
  const ModelConfig config = SmallDense(VisionTask::kSegmentation);
  const at::Tensor images = DeterministicImages({2, 3, kHeight, kWidth});
  const std::vector<Result> expected = OnCpu(config, images);
  const std::vector<Result> results = OnDevice(config, images);
  ASSERT_EQ(results.size(), 2);
  for (int i = 0; i < 2; ++i) {
    const auto& a = std::get<Segmentation>(results[i]);
    const auto& b = std::get<Segmentation>(expected[i]);
    EXPECT_TRUE(a.finite);
    EXPECT_EQ(a.height, b.height);
    EXPECT_LE(Differing(a.labels, b.labels), 0.001);
    EXPECT_EQ(a.confidence.size(), b.confidence.size());
    int64_t area = 0;
    for (const int64_t own : a.areas) area += own;
    EXPECT_EQ(area, a.labels.size());
  }
}

TEST(DeviceDenseTest, HalfPrecisionRuns) {
  const at::Tensor images = DeterministicImages({1, 3, kHeight, kWidth});
  for (const Precision precision :
       {Precision::kBFloat16, Precision::kFloat16}) {
    const Result detections =
        OnDevice(SmallDense(VisionTask::kDetection), images, precision)[0];
    EXPECT_TRUE(std::get<Detections>(detections).finite);
    EXPECT_FALSE(std::get<Detections>(detections).detections.empty());
    const ModelConfig segmenter = SmallDense(VisionTask::kSegmentation);
    const auto own =
        std::get<Segmentation>(OnDevice(segmenter, images, precision)[0]);
    const auto exact = std::get<Segmentation>(OnCpu(segmenter, images)[0]);
    EXPECT_TRUE(own.finite);
    EXPECT_LE(Differing(own.labels, exact.labels), 0.05);
  }
}

TEST(DeviceDenseTest, APoisonedImageIsToldApart) {
  const at::Tensor images =
      DeterministicImages({2, 3, kHeight, kWidth}).clone();
  images[0].fill_(NAN);
  const auto detections = OnDevice(SmallDense(VisionTask::kDetection), images);
  EXPECT_FALSE(std::get<Detections>(detections[0]).finite);
  EXPECT_TRUE(std::get<Detections>(detections[1]).finite);
  const auto maps = OnDevice(SmallDense(VisionTask::kSegmentation), images);
  EXPECT_FALSE(std::get<Segmentation>(maps[0]).finite);
  EXPECT_TRUE(std::get<Segmentation>(maps[1]).finite);
}

// Images of two sizes are padded to a larger size.
TEST(DeviceImagesTest, AreNormalisedAsOnTheCpu) {
  const c10::InferenceMode inference;
  const std::array<float, 3> mean = {0.1f, 0.2f, 0.3f}, std = {1, 2, 3};
  std::vector<uint8_t> pixels(2 * 7 * 9 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = 37 * i % 256;
  const std::vector<ops::ImagePixels> images = {
      {pixels.data(), 7, 9}, {pixels.data() + 7 * 9 * 3, 5, 8}};
  const auto options =
      at::TensorOptions().memory_format(at::MemoryFormat::ChannelsLast);
  const at::Tensor expected = at::full({2, 3, 8, 10}, 0.0)
                                  .to(at::kFloat)
                                  .contiguous(at::MemoryFormat::ChannelsLast);
  for (int i = 0; i < 2; ++i) {
    ops::NormalizeImage(images[i].rgb, /*plane=*/0, mean, std,
                        expected[i]
                            .narrow(1, 0, images[i].height)
                            .narrow(2, 0, images[i].width));
  }
  const at::Tensor x = at::empty({2, 3, 8, 10}, options).fill_(NAN);
  EmulatedOps().NormalizeImages({images, 8, 10, mean, std}, x);
  EXPECT_EQ(LargestDifference(x, expected), 0);
}

}  // namespace
}  // namespace sfmamba::model
