// Compares detectors, segmenters and the default models on the GPU with the
// answers of the CPU.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/config.h"
#include "model/vision_model.h"
#include "tests/gpu/model_device.h"
#include "tests/model/deviation.h"
#include "tests/model/testing.h"
#include "tests/testing/line_masks.h"
#include "tests/testing/run_model.h"

namespace sfmamba {
namespace {

// How much the results on the GPU may differ from the results on the CPU. Half
// precision may differ more than fp32.
struct Tolerance {
  double score, iou, mask, labels;

  // If there are N detections, at most 1 + N / one_of may differ.
  size_t one_of;

  size_t missing(size_t all) const { return 1 + all / one_of; }
};
constexpr Tolerance kFp32 = {1e-3, 0.99, 0.01, 0.001, 20};
// In a picture without objects, most detections are near the threshold and
// their proposals are close to each other. Therefore many may differ.
constexpr Tolerance kHalf = {0.05, 0.8, 0.1, 0.02, 2};

model::ModelConfig SmallDense(model::VisionTask task) {
  model::ModelConfig config = *model::VariantConfig("custom", task);
  config.backbone = model::SmallModel().backbone;
  config.backbone.windows = {8, 4};
  config.backbone.output_norms = true;
  config.num_classes = 6;
  config.segmentation_channels = 16;
  config.detector.channels = 16;
  config.detector.fc_width = 32;
  config.detector.proposals = 60;
  config.image_size = 96;
  return config;
}

// Runs the model on a picture of coloured squares on noise.
model::Result RunPicture(model::VisionModel& model, int height, int width) {
  constexpr int kSquare = 24;
  std::vector<uint8_t> pixels(height * width * 3);
  uint32_t state = 1;
  for (size_t i = 0; i < pixels.size(); ++i) {
    state = state * 1664525 + 1013904223;
    const int row = static_cast<int>(i) / 3 / width / kSquare;
    const int column = static_cast<int>(i) / 3 % width / kSquare;
    const int colour = (row * 7 + column * 5 + static_cast<int>(i) % 3) * 60;
    pixels[i] = (colour % 192) + (state >> 26);
  }
  model::ModelInput input;
  input.height = height;
  input.width = width;
  input.pixels = pixels.data();
  input.original_height = 3 * height / 2;
  input.original_width = 3 * width / 2;
  input.options = model::AskForAll(model.config().task);
  if (auto* const options =
          std::get_if<model::DetectionOptions>(&input.options)) {
    options->score_threshold = 1e-5f;  // Gives many detections.
  }
  auto results = model::RunBatch(model, {input});
  EXPECT_TRUE(results.ok()) << results.status();
  return (*results)[0];
}

double IntersectionOverUnion(const model::Box& a, const model::Box& b) {
  const double width =
      std::max(0.f, std::min(a.x2, b.x2) - std::max(a.x1, b.x1));
  const double height =
      std::max(0.f, std::min(a.y2, b.y2) - std::max(a.y1, b.y1));
  const double both = width * height;
  return both / (double{a.x2 - a.x1} * (a.y2 - a.y1) +
                 double{b.x2 - b.x1} * (b.y2 - b.y1) - both);
}

bool At(const base::Mask& mask, int x, int y) {
  x -= mask.left;
  y -= mask.top;
  return x >= 0 && x < mask.width && y >= 0 && y < mask.height &&
         mask.data[size_t{1} * y * mask.width + x] != 0;
}

// Returns the number of pixels in which the masks differ, divided by the area
// of the smallest rectangle around both masks. The masks may have different
// sizes and positions, even if the detections' boxes differ only by half a
// pixel.
double MaskDifference(const model::Detection& a, const model::Detection& b) {
  const base::Mask own = PixelsOf(*a.mask), other = PixelsOf(*b.mask);
  const int left = std::min(own.left, other.left);
  const int top = std::min(own.top, other.top);
  const int right = std::max(own.left + own.width, other.left + other.width);
  const int bottom = std::max(own.top + own.height, other.top + other.height);
  double different = 0;
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) {
      different += At(own, x, y) != At(other, x, y);
    }
  }
  return different / std::max(1.0, double(right - left) * (bottom - top));
}

void ExpectSame(const model::Detections& found, const model::Detections& wanted,
                const Tolerance& tolerance) {
  ASSERT_GT(wanted.detections.size(), 0);
  // A detection near the threshold may be missing on one of the devices.
  const size_t missing_most = tolerance.missing(wanted.detections.size());
  EXPECT_NEAR(found.detections.size(), wanted.detections.size(), missing_most);
  size_t missing = 0;
  for (const model::Detection& one : wanted.detections) {
    const bool matched = std::any_of(
        found.detections.begin(), found.detections.end(),
        [&](const model::Detection& other) {
          return other.class_id == one.class_id &&
                 std::fabs(other.score - one.score) < tolerance.score &&
                 IntersectionOverUnion(other.box, one.box) > tolerance.iou &&
                 MaskDifference(other, one) < tolerance.mask;
        });
    missing += matched ? 0 : 1;
  }
  std::printf("%zu of %zu detections are others\n", missing,
              wanted.detections.size());
  EXPECT_LE(missing, missing_most);
}

void ExpectSame(const model::Segmentation& seen,
                const model::Segmentation& wanted, const Tolerance& tolerance) {
  ASSERT_EQ(seen.height, wanted.height);
  ASSERT_EQ(seen.width, wanted.width);
  size_t different = 0;
  for (size_t i = 0; i < wanted.labels.size(); ++i) {
    if (wanted.labels[i] != seen.labels[i]) {
      ++different;
    } else if (tolerance.labels <= kFp32.labels) {
      EXPECT_NEAR(wanted.confidence[i], seen.confidence[i], 1) << i;
    }
  }
  std::printf("%zu of %zu labels are others\n", different,
              wanted.labels.size());
  EXPECT_LE(different, wanted.labels.size() * tolerance.labels);
}

void ExpectSame(const model::Classification& seen,
                const model::Classification& wanted,
                const Tolerance& tolerance) {
  const model::Deviation deviation =
      model::DeviationOf(seen.logits, wanted.logits);
  std::printf("cosine %.6f, largest deviation %.2g\n", deviation.cosine,
              deviation.largest);
  const bool exact = tolerance.labels <= kFp32.labels;
  EXPECT_GE(deviation.cosine, exact ? 0.999999 : 0.999);
  EXPECT_LE(deviation.largest, exact ? 1e-3 : 0.1);
  EXPECT_TRUE(deviation.same_argmax);
}

void ExpectSameResults(const model::Result& seen, const model::Result& wanted,
                       const Tolerance& tolerance) {
  ASSERT_EQ(seen.index(), wanted.index());
  std::visit(
      [&](const auto& result) {
        using Kind = std::decay_t<decltype(result)>;
        ExpectSame(std::get<Kind>(seen), result, tolerance);
      },
      wanted);
}

class GpuDenseTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasModelDevice()) GTEST_SKIP() << "no GPU";
  }

  // Compares the answers of a model with random weights on both devices.
  static void ExpectTheCpusAnswer(const model::ModelConfig& config) {
    const auto cpu = model::VisionModel::Random(config, /*seed=*/1);
    const auto device =
        model::VisionModel::Random(config, /*seed=*/1, OnModelDevice());
    ASSERT_TRUE(cpu.ok() && device.ok()) << cpu.status() << device.status();
    ExpectSameResults(RunPicture(**device, 60, 90), RunPicture(**cpu, 60, 90),
                      kFp32);
  }
};

TEST_F(GpuDenseTest, ADetectorFindsWhatTheCpuFinds) {
  ExpectTheCpusAnswer(SmallDense(model::VisionTask::kDetection));
}

TEST_F(GpuDenseTest, ASegmenterSeesWhatTheCpuSees) {
  ExpectTheCpusAnswer(SmallDense(model::VisionTask::kSegmentation));
}

// ---- The default models, in the folder models/ ----

// The settings of config.textproto, except the settings of the pictures' size.
model::ModelConfig Lite0(model::VisionTask task, int classes,
                         std::array<int, 2> windows) {
  model::ModelConfig config = *model::VariantConfig("custom", task);
  config.num_classes = classes;
  config.backbone.stem = model::Stem::kEfficientNetLite0;
  config.backbone.dim = 28;
  config.backbone.depths = {0, 0, 4, 2};
  config.backbone.num_heads = {1, 2, 4, 8};
  config.backbone.windows = windows;
  return config;
}

struct Shipped {
  const char* name;
  model::ModelConfig config;
  int height, width;  // The size of the picture.
};

Shipped Everyday() {
  return {"everyday", Lite0(model::VisionTask::kClassification, 20, {10, 5}),
          160, 160};
}

Shipped Photographs() {
  model::ModelConfig config =
      Lite0(model::VisionTask::kClassification, 1000, {14, 7});
  config.backbone.stem = model::Stem::kEfficientNetLite0Stride32;
  config.backbone.dim = 24;
  config.backbone.depths = {0, 0, 0, 6};
  config.backbone.num_heads = {1, 2, 3, 6};
  config.classifier = {/*channels=*/320, /*features=*/1280};
  return {"photographs", config, 224, 224};
}

Shipped EverydayDetector() {
  model::ModelConfig config =
      Lite0(model::VisionTask::kDetection, 20, {20, 10});
  model::DetectorConfig& detector = config.detector;
  detector.box_stages = 1;
  detector.box_convs = 0;
  detector.box_fcs = 2;
  detector.mask_convs = 2;
  detector.channels = 48;
  detector.fc_width = 192;
  detector.anchor_scale = 6;
  detector.rpn_candidates = 200;
  detector.proposals = 100;
  detector.finest_scale = 28;
  detector.box_stds = {{0.1f, 0.1f, 0.2f, 0.2f}};
  return {"everyday_detector", config, 240, 320};
}

Shipped EverydaySegmenter() {
  model::ModelConfig config =
      Lite0(model::VisionTask::kSegmentation, 21, {20, 10});
  config.segmentation_channels = 48;
  return {"everyday_segmenter", config, 240, 320};
}

class GpuShippedTest : public testing::TestWithParam<Shipped (*)()> {
 protected:
  void SetUp() override {
    if (!HasModelDevice()) GTEST_SKIP() << "no GPU";
  }
};

TEST_P(GpuShippedTest, AnswersAsOnTheCpu) {
  Shipped shipped = GetParam()();
  const std::string weights =
      std::string("models/") + shipped.name + "/1/model.safetensors";
  const auto run = [&](const model::ModelOptions& options) {
    auto model = model::VisionModel::Load(shipped.config, {weights}, options);
    EXPECT_TRUE(model.ok()) << model.status();
    return RunPicture(**model, shipped.height, shipped.width);
  };
  const model::Result expected = run({});
  ExpectSameResults(run(OnModelDevice()), expected, kFp32);
  shipped.config.precision = model::Precision::kBFloat16;
  ExpectSameResults(run(OnModelDevice()), expected, kHalf);
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuShippedTest,
    testing::Values(Everyday, Photographs, EverydayDetector, EverydaySegmenter),
    [](const auto& info) {
      std::string name = info.param().name;
      name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
      return name;
    });

}  // namespace
}  // namespace sfmamba
