#ifndef SFMAMBA_TESTS_MODEL_HEADS_DETECTOR_FIXTURE_H_
#define SFMAMBA_TESTS_MODEL_HEADS_DETECTOR_FIXTURE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "model/heads/detection_head.h"
#include "tests/model/implementations.h"
#include "tests/testing/fixture.h"

namespace sfmamba::heads {

constexpr double kTolerance = 1e-4;
constexpr int kClasses = 5;

// A detector's configuration, and the fixture with the weights, features and
// answers of the reference detector.
struct Case {
  // The fixture's name, and the prefix of the answers' keys in the fixture. The
  // prefix is "out." or "faster.".
  std::string fixture, answers;
  model::DetectorConfig config;
};

inline Case CascadeMaskRcnn() {
  Case c{"cascade_mask_rcnn", "out.", {}};
  c.config.channels = 12;
  c.config.fc_width = 24;
  c.config.rpn_candidates = 120;
  c.config.proposals = 40;
  c.config.max_detections = 20;
  return c;
}

inline Case MaskRcnn() {
  Case c = CascadeMaskRcnn();
  c.fixture = "mask_rcnn";
  c.config.box_stages = 1;
  c.config.box_stds.resize(1);
  c.config.box_convs = 0;
  c.config.box_fcs = 2;
  return c;
}

inline Case FasterRcnn() {
  Case c = MaskRcnn();
  c.answers = "faster.";
  c.config.masks = false;
  return c;
}

inline const std::vector<int> kInChannels = {8, 16, 24, 32};

// Returns the detector's weights. Expects that the fixture has no other keys.
inline std::map<std::string, weights::TensorView> Weights(
    const Fixture& fixture, const model::DetectorConfig& config) {
  std::map<std::string, weights::TensorView> weights;
  for (const std::string prefix : {"neck.", "rpn_head.", "roi_head."}) {
    for (const auto& [key, view] : fixture.Weights(prefix)) {
      const bool mask = key.find("mask_head") != std::string::npos;
      if (!mask || config.masks) weights.emplace(prefix + key, view);
    }
  }
  return weights;
}

inline layers::Features FeaturesOf(const Fixture& fixture) {
  layers::Features features;
  for (int i = 0; i < 4; ++i) {
    features.push_back(fixture["in.feat." + std::to_string(i)].contiguous(
        at::MemoryFormat::ChannelsLast));
  }
  return features;
}

inline model::DetectionOptions WithMasks() {
  model::DetectionOptions options;
  options.masks = true;
  return options;
}

inline std::vector<ImageInfo> ImagesOf(const Fixture& fixture) {
  const at::Tensor size = fixture["in.img_shape"];
  const at::Tensor original = fixture["in.ori_shape"];
  std::vector<ImageInfo> images(2);
  for (int i = 0; i < 2; ++i) {
    images[i].height = size[i][0].item<int>();
    images[i].width = size[i][1].item<int>();
    images[i].original_height = original[i][0].item<int>();
    images[i].original_width = original[i][1].item<int>();
    images[i].options = WithMasks();
  }
  return images;
}

// Returns the features of image `i` of a batch.
inline layers::Features Only(const layers::Features& features, int64_t i) {
  layers::Features own;
  for (const at::Tensor& map : features) own.push_back(map.narrow(0, i, 1));
  return own;
}

// Tests of detectors against a fixture.
class DetectorFixture : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { head_ = MakeDetector(model::Cpu()); }

  std::unique_ptr<DetectionHead> MakeDetector(
      const ops::Implementation& implementation) {
    weights::StateDict weights(Weights(fixture_, config_));
    auto head = std::make_unique<DetectionHead>(config_, kClasses, kInChannels,
                                                weights.root(), implementation);
    EXPECT_EQ(weights.Finish(), absl::OkStatus());
    return head;
  }

  // Makes the detector with weights changed by change(key, tensor).
  template <typename Change>
  std::unique_ptr<DetectionHead> MakeChanged(
      const model::DetectorConfig& config, Change change) {
    weights::StateDict weights(
        [&](const std::string& key, at::IntArrayRef shape) {
          at::Tensor tensor = fixture_[key];
          change(key, tensor);
          EXPECT_EQ(tensor.sizes(), shape) << key;
          return tensor.contiguous();
        });
    return std::make_unique<DetectionHead>(config, kClasses, kInChannels,
                                           weights.root(), model::Cpu());
  }
  template <typename Change>
  std::unique_ptr<DetectionHead> MakeChanged(Change change) {
    return MakeChanged(config_, change);
  }

  std::string Answer(int64_t i, const std::string& key) const {
    return GetParam().answers + key + "." + std::to_string(i);
  }

  model::Detections Run(const DetectionHead& head,
                        const model::DetectionOptions& options) const {
    ImageInfo image = images_[0];
    image.options = options;
    return std::get<model::Detections>(
        head.Forward(Only(features_, 0), {image})[0]);
  }

  const c10::InferenceMode guard_;
  const model::DetectorConfig config_ = GetParam().config;
  const Fixture fixture_{GetParam().fixture};
  const layers::Features features_ = FeaturesOf(fixture_);
  const std::vector<ImageInfo> images_ = ImagesOf(fixture_);
  std::unique_ptr<DetectionHead> head_;
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_TESTS_MODEL_HEADS_DETECTOR_FIXTURE_H_
