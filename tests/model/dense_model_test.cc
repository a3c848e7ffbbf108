#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "ATen/Parallel.h"
#include "ATen/TensorOperators.h"
#include "ATen/ops/constant_pad_nd.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/engine/make_vision_model.h"
#include "model/vision_model.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/line_masks.h"
#include "tests/testing/run_model.h"

namespace sfmamba::model {
namespace {

using ::testing::HasSubstr;

// Returns a small model for a dense task. Its maps do not consist of whole
// windows.
ModelConfig SmallDense(VisionTask task, Architecture architecture) {
  ModelConfig config = *VariantConfig("custom", task);
  if (architecture == Architecture::kVMamba) {
    config.backbone = VariantConfig("vmamba_t_s2l5")->backbone;
    config.backbone.dim = 8;
    config.backbone.depths = {1, 1, 2, 1};
  } else {
    config.backbone = SmallModel().backbone;
    config.backbone.windows = {8, 4};
  }
  config.backbone.output_norms = true;
  config.num_classes = 6;
  config.segmentation_channels = 16;
  config.detector.channels = 16;
  config.detector.fc_width = 32;
  config.detector.proposals = 60;
  config.image_size = 96;
  return config;
}

std::unique_ptr<VisionModel> MakeSmall(VisionTask task,
                                       Architecture architecture,
                                       bool reference = false) {
  ModelOptions options;
  options.reference = reference;
  auto model =
      VisionModel::Random(SmallDense(task, architecture), /*seed=*/1, options);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// A noise picture and the model input made from it.
struct Picture {
  Picture(VisionTask task, int height, int width, int seed) {
    pixels.resize(height * width * 3);
    uint32_t state = seed;
    for (uint8_t& value : pixels) {
      state = state * 1664525 + 1013904223;
      value = state >> 24;
    }
    input.height = height;
    input.width = width;
    input.pixels = pixels.data();
    input.original_height = 3 * height / 2;
    input.original_width = 3 * width / 2;
    input.options = AskForAll(task);
  }
  Picture(Picture&&) = default;

  std::vector<uint8_t> pixels;
  ModelInput input;
};

std::vector<ModelInput> Inputs(const std::vector<Picture>& pictures) {
  std::vector<ModelInput> inputs;
  for (const Picture& picture : pictures) inputs.push_back(picture.input);
  return inputs;
}

// Returns three pictures. A detector pads them to 64 x 96. For a segmenter,
// they have the same size.
std::vector<Picture> Pictures(VisionTask task) {
  std::vector<Picture> pictures;
  const bool detector = task == VisionTask::kDetection;
  pictures.emplace_back(task, 60, 90, 1);
  pictures.emplace_back(task, detector ? 64 : 60, detector ? 96 : 90, 2);
  pictures.emplace_back(task, detector ? 33 : 60, detector ? 65 : 90, 3);
  return pictures;
}

void ExpectSame(const Detections& a, const Detections& b) {
  EXPECT_TRUE(a.finite);
  ASSERT_EQ(a.detections.size(), b.detections.size());
  EXPECT_GT(a.detections.size(), 0);
  for (size_t i = 0; i < a.detections.size(); ++i) {
    const Detection &own = a.detections[i], &other = b.detections[i];
    EXPECT_EQ(own.class_id, other.class_id);
    EXPECT_EQ(own.score, other.score);
    EXPECT_EQ(own.box.x1, other.box.x1);
    EXPECT_EQ(own.box.y1, other.box.y1);
    EXPECT_EQ(own.box.x2, other.box.x2);
    EXPECT_EQ(own.box.y2, other.box.y2);
    const base::Mask own_mask = PixelsOf(*own.mask);
    const base::Mask other_mask = PixelsOf(*other.mask);
    EXPECT_EQ(own_mask.left, other_mask.left);
    EXPECT_EQ(own_mask.top, other_mask.top);
    EXPECT_EQ(own_mask.data, other_mask.data);
  }
}

void ExpectSame(const Segmentation& a, const Segmentation& b) {
  EXPECT_TRUE(a.finite);
  EXPECT_EQ(a.height, 90);
  EXPECT_EQ(a.width, 135);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.confidence, b.confidence);
  EXPECT_EQ(a.areas, b.areas);
}

void ExpectSame(const Result& a, const Result& b) {
  if (const auto* detections = std::get_if<Detections>(&a)) {
    ExpectSame(*detections, std::get<Detections>(b));
  } else {
    ExpectSame(std::get<Segmentation>(a), std::get<Segmentation>(b));
  }
}

class DenseModelTest
    : public testing::TestWithParam<std::tuple<VisionTask, Architecture>> {
 protected:
  static VisionTask task() { return std::get<VisionTask>(GetParam()); }
  static Architecture architecture() {
    return std::get<Architecture>(GetParam());
  }
  std::vector<Result> Run(absl::Span<const ModelInput> inputs) {
    auto results = RunBatch(*model_, inputs);
    EXPECT_TRUE(results.ok()) << results.status();
    return *std::move(results);
  }

  std::unique_ptr<VisionModel> model_ = MakeSmall(task(), architecture());
  const std::vector<Picture> pictures_ = Pictures(task());
  const std::vector<ModelInput> inputs_ = Inputs(pictures_);
};

INSTANTIATE_TEST_SUITE_P(
    Tasks, DenseModelTest,
    testing::Combine(
        testing::Values(VisionTask::kDetection, VisionTask::kSegmentation),
        testing::Values(Architecture::kHybrid, Architecture::kVMamba)),
    [](const auto& info) {
      const bool detects =
          std::get<VisionTask>(info.param) == VisionTask::kDetection;
      const bool on_vmamba =
          std::get<Architecture>(info.param) == Architecture::kVMamba;
      return absl::StrCat(detects ? "Detection" : "Segmentation",
                          on_vmamba ? "OnVMamba" : "");
    });

TEST_P(DenseModelTest, AnImageIsTheSameAloneAndInAnyBatch) {
  std::vector<Result> alone;
  for (const ModelInput& input : inputs_) alone.push_back(Run({input})[0]);
  const std::vector<Result> together = Run(inputs_);
  for (int i = 0; i < 3; ++i) ExpectSame(together[i], alone[i]);
  const std::vector<Result> turned = Run({inputs_[2], inputs_[0]});
  ExpectSame(turned[0], alone[2]);
  ExpectSame(turned[1], alone[0]);
}

TEST_P(DenseModelTest, EachImageIsAnsweredBeforeTheNextIsRun) {
  const Picture first(task(), 60, 90, 1), other(task(), 60, 90, 3);
  Picture second(task(), 60, 90, 2);
  const auto context = MakeContext(*model_);
  RunInfo info;
  std::vector<Result> results;
  const auto done = [&](Result result) {
    EXPECT_EQ(info.padded_images, 2);
    results.push_back(std::move(result));
    // Changes the second image's pixels in place, before they are read.
    std::copy(other.pixels.begin(), other.pixels.end(), second.pixels.begin());
  };
  const absl::Status status =
      context->Run({first.input, second.input}, &info, done);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(results.size(), 2);
  ExpectSame(results[0], Run({first.input})[0]);
  ExpectSame(results[1], Run({other.input})[0]);
}

TEST_P(DenseModelTest, ThreadsDoNotMatter) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const std::vector<Result> one = Run(inputs_);
  for (const int count : {2, 3}) {
    at::set_num_threads(count);
    const std::vector<Result> more = Run(inputs_);
    for (int i = 0; i < 3; ++i) ExpectSame(more[i], one[i]);
  }
  at::set_num_threads(threads);
}

TEST_P(DenseModelTest, ANanStaysInItsImage) {
  const at::Tensor values = DeterministicImages({3, 60, 90});
  values[1][30][40] = std::numeric_limits<float>::quiet_NaN();
  std::vector<ModelInput> inputs = inputs_;
  inputs[1].height = 60;
  inputs[1].width = 90;
  inputs[1].pixels = nullptr;
  inputs[1].values = values.const_data_ptr<float>();
  const std::vector<Result> results = Run(inputs);
  const std::vector<Result> clean = Run(inputs_);
  ExpectSame(results[0], clean[0]);
  ExpectSame(results[2], clean[2]);
  if (task() == VisionTask::kDetection) {
    EXPECT_FALSE(std::get<Detections>(results[1]).finite);
  } else {
    EXPECT_FALSE(std::get<Segmentation>(results[1]).finite);
  }
}

// Nearly equal scores may change their order, so a few answers may differ.
TEST_P(DenseModelTest, AnswersAreTheReferences) {
  const auto reference = MakeSmall(task(), architecture(), /*reference=*/true);
  const Picture picture(task(), 53, 89, 6);
  const auto results = RunBatch(*reference, {picture.input});
  ASSERT_TRUE(results.ok()) << results.status();
  const Result own = Run({picture.input})[0];
  if (task() == VisionTask::kDetection) {
    const auto& expected = std::get<Detections>((*results)[0]).detections;
    const auto& found = std::get<Detections>(own).detections;
    ASSERT_EQ(found.size(), expected.size());
    ASSERT_GT(found.size(), 0);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i].score, expected[i].score, 1e-3) << i;
    }
  } else {
    const auto& expected = std::get<Segmentation>((*results)[0]);
    const auto& found = std::get<Segmentation>(own);
    ASSERT_EQ(found.labels.size(), expected.labels.size());
    size_t same = 0;
    for (size_t i = 0; i < found.labels.size(); ++i) {
      same += found.labels[i] == expected.labels[i];
    }
    EXPECT_GE(same, 0.999 * expected.labels.size());
  }
}

TEST_P(DenseModelTest, BatchMatesAreOfOnePaddedSize) {
  const Picture other(task(), 60, 97, 4);
  const absl::Status status =
      RunBatch(*model_, {inputs_[0], other.input}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(task() == VisionTask::kDetection
                            ? "image 1: expected the first image's size 60x90 "
                              "up to a multiple of 32, got 60x97"
                            : "image 1: expected the first image's size 60x90, "
                              "got 60x97"));
}

TEST_P(DenseModelTest, AnyImageSizeIsTaken) {
  for (const auto& [height, width] :
       std::vector<std::pair<int, int>>{{1, 1}, {1, 300}, {200, 3}}) {
    const Picture picture(task(), height, width, 5);
    EXPECT_TRUE(RunBatch(*model_, {picture.input}).ok())
        << height << "x" << width;
  }
}

// These tests let a classifier pad its input, as dense models do. A
// classifier's logits depend on the whole padded input, so they show whether
// the padding is right.
TEST(PaddingTest, IsZerosAfterNormalisationRightAndBelow) {
  ModelConfig config = SmallModel();
  const auto plain = MakeModel(config);
  config.pad_multiple = 32;
  const auto padding = MakeModel(config);
  const at::Tensor images = DeterministicImages({2, 3, 60, 90});
  const at::Tensor padded = at::constant_pad_nd(images, {0, 6, 0, 4});
  EXPECT_EQ(Logits(*padding, images), Logits(*plain, padded));
  EXPECT_NE(Logits(*padding, images), Logits(*plain, images));
  EXPECT_EQ(Logits(*padding, padded), Logits(*plain, padded));
}

TEST(PaddingTest, PixelsAreNormalisedAsTheyAreWithout) {
  ModelConfig config = SmallModel();
  const Picture picture(VisionTask::kClassification, 60, 90, 1);
  at::Tensor values =
      at::constant_pad_nd(DeterministicImages({1, 3, 60, 90}), {0, 6, 0, 4});
  values.zero_();
  for (int64_t i = 0; i < 60 * 90 * 3; ++i) {
    values[0][i % 3][i / 3 / 90][i / 3 % 90] =
        (picture.pixels[i] / 255.0 - config.mean[i % 3]) / config.std[i % 3];
  }
  const std::vector<float> expected = Logits(*MakeModel(config), values);
  config.pad_multiple = 32;
  const auto results = RunBatch(*MakeModel(config), {picture.input});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_LE(LargestDifference(std::get<Classification>((*results)[0]).logits,
                              expected),
            1e-4);
}

}  // namespace
}  // namespace sfmamba::model
