#include "model/heads/detection_head.h"

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ATen/Parallel.h"
#include "ATen/TensorOperators.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/match.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "model/heads/box_coder.h"
#include "model/weights/random_weights.h"
#include "tests/model/against_reference.h"
#include "tests/model/heads/detector_fixture.h"
#include "tests/model/implementations.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/fixture.h"
#include "tests/testing/line_masks.h"

namespace sfmamba::heads {
namespace {

at::Tensor BoxesOf(const model::Detections& detections) {
  const int64_t count = detections.detections.size();
  const at::Tensor boxes = at::empty({count, 4}, at::kFloat);
  for (int64_t i = 0; i < count; ++i) {
    SetBox(boxes, i, detections.detections[i].box);
  }
  return boxes;
}

at::Tensor ScoresOf(const model::Detections& detections) {
  const int64_t count = detections.detections.size();
  const at::Tensor scores = at::empty({count}, at::kFloat);
  for (int64_t i = 0; i < count; ++i) {
    scores[i].fill_(detections.detections[i].score);
  }
  return scores;
}

// Returns the mask in a picture of this size, uint8 [height, width].
at::Tensor Canvas(const base::Mask& mask, int height, int width) {
  const at::Tensor canvas = at::zeros({height, width}, at::kByte);
  for (int y = 0; y < mask.height; ++y) {
    std::memcpy(canvas[mask.top + y].data_ptr<uint8_t>() + mask.left,
                mask.data.data() + y * mask.width, mask.width);
  }
  return canvas;
}

// Returns a result as bytes, for comparison.
std::string Bytes(const model::Result& result) {
  const model::Detections& detections = std::get<model::Detections>(result);
  std::string bytes = detections.finite ? "finite" : "not finite";
  const auto add = [&](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  for (const model::Detection& detection : detections.detections) {
    add(detection.box);
    add(detection.class_id);
    add(detection.score);
    if (detection.mask == nullptr) continue;
    const base::Mask mask = PixelsOf(*detection.mask);
    for (const int side : {mask.left, mask.top, mask.width, mask.height}) {
      add(side);
    }
    bytes.append(mask.data.begin(), mask.data.end());
  }
  return bytes;
}

class DetectionHeadTest : public DetectorFixture {
 protected:
  void ExpectReference(const DetectionHead& head) const;
};

INSTANTIATE_TEST_SUITE_P(Detectors, DetectionHeadTest,
                         testing::Values(CascadeMaskRcnn(), MaskRcnn(),
                                         FasterRcnn()),
                         [](const auto& info) {
                           return info.param.answers == "faster."
                                      ? "faster_rcnn"
                                      : info.param.fixture;
                         });

void DetectionHeadTest::ExpectReference(const DetectionHead& head) const {
  const std::vector<model::Result> results = head.Forward(features_, images_);
  ASSERT_EQ(results.size(), 2);
  for (int i = 0; i < 2; ++i) {
    const auto& detections = std::get<model::Detections>(results[i]);
    EXPECT_TRUE(detections.finite);
    const at::Tensor dets = fixture_[Answer(i, "dets")];
    const at::Tensor labels = fixture_[Answer(i, "labels")];
    ASSERT_EQ(detections.detections.size(), dets.size(0));
    EXPECT_LE(RelativeError(BoxesOf(detections), dets.narrow(1, 0, 4)),
              kTolerance);
    EXPECT_LE(RelativeError(ScoresOf(detections), dets.select(1, 4)),
              kTolerance);
    for (int64_t k = 0; k < labels.size(0); ++k) {
      EXPECT_EQ(detections.detections[k].class_id, labels[k].item<int64_t>());
    }
    if (!config_.masks) continue;
    const at::Tensor masks = fixture_[Answer(i, "masks")];
    int64_t different = 0;
    for (int64_t k = 0; k < labels.size(0); ++k) {
      const at::Tensor canvas = Canvas(PixelsOf(*detections.detections[k].mask),
                                       masks.size(1), masks.size(2));
      different += (canvas != masks[k]).sum().item<int64_t>();
    }
    EXPECT_GT(masks.sum().item<int64_t>(), 0);
    EXPECT_LE(different, masks.numel() / 1000);
  }
}

// Half precision is not compared here, because rounding changes which boxes
// remain. RoiHeadTest and other tests compare the head's parts in half
// precision.
TEST_P(DetectionHeadTest, GivesTheReferencesDetections) {
  ExpectReference(*MakeDetector(model::Reference()));
  for (const auto& implementation : model::TestedImplementations()) {
    if (implementation.products != at::kFloat) continue;
    SCOPED_TRACE(implementation.name);
    ExpectReference(*MakeDetector(*implementation.ops));
  }
}

TEST_P(DetectionHeadTest, BatchMatesAndThreadsDoNotShow) {
  const std::vector<model::Result> together =
      head_->Forward(features_, images_);
  const int threads = at::get_num_threads();
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(Bytes(head_->Forward(Only(features_, i), {images_[i]})[0]),
                Bytes(together[i]))
          << "image " << i << ", threads " << count;
    }
  }
  at::set_num_threads(threads);
}

TEST_P(DetectionHeadTest, ANanStaysInItsImage) {
  const std::string clean = Bytes(head_->Forward(features_, images_)[0]);
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    for (int level = 0; level < 4; ++level) {
      layers::Features features = features_;
      features[level] = features[level].clone();
      features[level][1][3][1][1].fill_(value);
      const std::vector<model::Result> results =
          head_->Forward(features, images_);
      EXPECT_EQ(Bytes(results[0]), clean);
      const auto& dirty = std::get<model::Detections>(results[1]);
      EXPECT_FALSE(dirty.finite) << value << " in level " << level;
      EXPECT_TRUE(dirty.detections.empty());
    }
  }
}

TEST_P(DetectionHeadTest, ValuesOfTheHeadsThatOverflowAreNotFinite) {
  for (const std::string part :
       {"fc_cls.bias", "fc_reg.bias", "conv_logits.bias"}) {
    if (part == "conv_logits.bias" && !config_.masks) continue;
    const auto head =
        MakeChanged([&](const std::string& key, at::Tensor& tensor) {
          if (absl::EndsWith(key, part)) tensor.fill_(INFINITY);
        });
    EXPECT_FALSE(Run(*head, WithMasks()).finite) << part;
  }
}

TEST_P(DetectionHeadTest, OneBoxAndMaskForAllClassesAreOneForEach) {
  model::DetectorConfig agnostic = config_;
  agnostic.class_agnostic_boxes = agnostic.class_agnostic_masks = true;
  // Makes weights that repeat the first class `times` times.
  const auto first_class = [](int64_t times) {
    return [times](const std::string& key, at::Tensor& tensor) {
      const bool boxes = absl::StrContains(key, "fc_reg.");
      if (!boxes && !absl::StrContains(key, "conv_logits.")) return;
      std::vector<int64_t> repeats(tensor.dim(), 1);
      repeats[0] = times;
      tensor = tensor.narrow(0, 0, boxes ? 4 : 1).repeat(repeats);
    };
  };
  const auto one = MakeChanged(agnostic, first_class(1));
  const auto each = MakeChanged(config_, first_class(kClasses));
  const model::Detections expected = Run(*each, WithMasks());
  EXPECT_FALSE(expected.detections.empty());
  EXPECT_EQ(Bytes(Run(*one, WithMasks())), Bytes(expected));
}

TEST_P(DetectionHeadTest, NoProposalsMeanNoDetections) {
  // These weights move all anchors to the right edge of the picture.
  const auto head = MakeChanged([](const std::string& key, at::Tensor& tensor) {
    if (key == "rpn_head.rpn_reg.bias") tensor.fill_(1e6);
  });
  const model::Detections detections = Run(*head, WithMasks());
  EXPECT_TRUE(detections.finite);
  EXPECT_TRUE(detections.detections.empty());
}

TEST_P(DetectionHeadTest, NothingPassesAHighThreshold) {
  model::DetectionOptions options = WithMasks();
  options.score_threshold = 1;
  const model::Detections detections = Run(*head_, options);
  EXPECT_TRUE(detections.finite);
  EXPECT_TRUE(detections.detections.empty());
}

TEST_P(DetectionHeadTest, BoxesAreTheSameWithoutTheirMasks) {
  model::DetectionOptions options;
  const model::Detections with = Run(*head_, WithMasks());
  const model::Detections without = Run(*head_, options);
  ASSERT_EQ(with.detections.size(), without.detections.size());
  for (size_t k = 0; k < with.detections.size(); ++k) {
    const model::Detection &a = with.detections[k], &b = without.detections[k];
    EXPECT_EQ(std::memcmp(&a.box, &b.box, sizeof(model::Box)), 0);
    EXPECT_EQ(a.score, b.score);
    EXPECT_TRUE(b.mask == nullptr);
  }
}

TEST_P(DetectionHeadTest, FewerDetectionsAreTheBest) {
  model::DetectionOptions options;
  const model::Detections all = Run(*head_, options);
  options.max_detections = 3;
  const model::Detections best = Run(*head_, options);
  ASSERT_EQ(best.detections.size(), 3);
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(best.detections[k].score, all.detections[k].score);
  }
  options.score_threshold =
      best.detections[1].score;  // An equal score does not exceed it.
  EXPECT_EQ(Run(*head_, options).detections.size(), 1);
}

TEST_P(DetectionHeadTest, OnlyWantedClassesAreFound) {
  model::DetectionOptions options;
  options.max_detections = 1000;
  std::set<int> all, some;
  for (const model::Detection& d : Run(*head_, options).detections) {
    all.insert(d.class_id);
  }
  ASSERT_GE(all.size(), 2);
  const int wanted = *all.begin();
  options.classes = {wanted};
  for (const model::Detection& d : Run(*head_, options).detections) {
    some.insert(d.class_id);
  }
  EXPECT_EQ(some, (std::set<int>{wanted}));
}

TEST_P(DetectionHeadTest, ThresholdAndClassesOfSuppressionCount) {
  model::DetectionOptions options;
  options.max_detections = 1000;
  const size_t usual = Run(*head_, options).detections.size();
  options.class_agnostic_nms = true;
  EXPECT_LT(Run(*head_, options).detections.size(), usual);
  options.class_agnostic_nms = false;
  options.nms_iou_threshold = 1;
  EXPECT_GT(Run(*head_, options).detections.size(), usual);
}

// The head has the widths of the published detectors. The image is small.
TEST(DetectionHeadWidthTest, ThreadsDoNotShow) {
  const c10::InferenceMode guard;
  model::DetectorConfig config;
  config.proposals = 40;
  config.score_threshold = 0;
  config.max_detections = 10;
  weights::StateDict weights(weights::MakeRandomWeights(1));
  const std::vector<int> in_channels = {80, 160, 320, 640};
  const DetectionHead head(config, 80, in_channels, weights.root(),
                           model::Cpu());
  ImageInfo image;
  image.height = image.original_height = 150;
  image.width = image.original_width = 190;
  image.options = WithMasks();
  layers::Features features;
  for (int i = 0; i < 4; ++i) {
    const int64_t height = 160 >> (i + 2), width = 192 >> (i + 2);
    features.push_back(DeterministicImages({1, in_channels[i], height, width})
                           .contiguous(at::MemoryFormat::ChannelsLast));
  }
  const int threads = at::get_num_threads();
  std::set<std::string> answers;
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    const model::Result result = head.Forward(features, {image})[0];
    EXPECT_EQ(std::get<model::Detections>(result).detections.size(), 10);
    answers.insert(Bytes(result));
  }
  at::set_num_threads(threads);
  EXPECT_EQ(answers.size(), 1);
}

}  // namespace
}  // namespace sfmamba::heads
