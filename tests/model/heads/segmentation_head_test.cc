#include "model/heads/segmentation_head.h"

#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "ATen/Parallel.h"
#include "ATen/TensorOperators.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/from_blob.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "model/weights/random_weights.h"
#include "tests/model/against_reference.h"
#include "tests/model/implementations.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/fixture.h"

namespace sfmamba::heads {
namespace {

constexpr double kTolerance = 1e-4;
const std::vector<int> kInChannels = {8, 16, 24, 32};
constexpr int kChannels = 16, kClasses = 7;

// Returns random maps of two images. They have the same sizes as a backbone's
// maps of inputs with this height and width.
layers::Features RandomFeatures(int height, int width) {
  layers::Features features;
  for (int i = 0; i < 4; ++i) {
    const int stride = 4 << i;
    features.push_back(
        DeterministicImages({2, kInChannels[i], (height + stride - 1) / stride,
                             (width + stride - 1) / stride})
            .contiguous(at::MemoryFormat::ChannelsLast));
  }
  return features;
}

layers::Features Only(const layers::Features& features, int64_t image) {
  layers::Features own;
  for (const at::Tensor& map : features) own.push_back(map.narrow(0, image, 1));
  return own;
}

ImageInfo Info(int height, int width, int original_height, int original_width) {
  ImageInfo image;
  image.height = height;
  image.width = width;
  image.original_height = original_height;
  image.original_width = original_width;
  return image;
}

const model::Segmentation& AsMap(const model::Result& result) {
  return std::get<model::Segmentation>(result);
}

SegmentationHead MakeRandomHead() {
  weights::StateDict weights(weights::MakeRandomWeights(1));
  return SegmentationHead(kInChannels, kChannels, kClasses, weights.root(),
                          model::Cpu());
}

at::Tensor LogitsOf(const SegmentationHead& head,
                    const layers::Features& features) {
  return head.Classify(head.Fuse(head.Refine(head.Merge(features))));
}

// Compares both implementations with the reference's head, features and
// answers.
class UpernetTest : public testing::TestWithParam<bool> {
 protected:
  UpernetTest()
      : fixture_("upernet"),
        weights_(Keys(fixture_)),
        head_(kInChannels, kChannels, kClasses, weights_.root(),
              model::CpuOrReference(GetParam())) {
    for (int i = 0; i < 4; ++i) {
      const at::Tensor map = fixture_["in.feat." + std::to_string(i)];
      features_.push_back(
          GetParam() ? map.contiguous(at::MemoryFormat::ChannelsLast) : map);
    }
  }

  static std::map<std::string, weights::TensorView> Keys(
      const Fixture& fixture) {
    std::map<std::string, weights::TensorView> keys;
    for (const auto& [key, view] : fixture.Weights("decode_head.")) {
      keys.emplace("decode_head." + key, view);
    }
    return keys;
  }

  // Returns the fraction of pixels whose class differs from `expected` [2, H,
  // W].
  double Wrong(const std::vector<model::Result>& results,
               const std::string& key) {
    const at::Tensor expected = fixture_[key];
    const uint8_t* label = expected.const_data_ptr<uint8_t>();
    int64_t wrong = 0;
    for (const model::Result& result : results) {
      const model::Segmentation& map = AsMap(result);
      EXPECT_EQ(map.height, expected.size(1));
      EXPECT_EQ(map.width, expected.size(2));
      for (const uint16_t own : map.labels) wrong += own != *label++;
    }
    EXPECT_EQ(label, expected.const_data_ptr<uint8_t>() + expected.numel());
    return static_cast<double>(wrong) / expected.numel();
  }

  const c10::InferenceMode guard_;
  Fixture fixture_;
  weights::StateDict weights_;
  SegmentationHead head_;
  layers::Features features_;
};

INSTANTIATE_TEST_SUITE_P(Forms, UpernetTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "Cpu" : "Reference";
                         });

TEST_P(UpernetTest, TakesTheReferencesWeights) {
  EXPECT_EQ(weights_.Finish(), absl::OkStatus());
}

TEST_P(UpernetTest, EveryLevelIsTheReferences) {
  EXPECT_LE(RelativeError(head_.Pool(features_.back()), fixture_["out.psp"]),
            kTolerance);
  const at::Tensor fused = head_.Fuse(head_.Refine(head_.Merge(features_)));
  EXPECT_LE(RelativeError(fused, fixture_["out.feature"]), kTolerance);
  EXPECT_LE(RelativeError(head_.Classify(fused), fixture_["out.logits"]),
            kTolerance);
}

TEST_P(UpernetTest, MapsAreTheReferencesAtBothSizes) {
  std::vector<ImageInfo> images(2, Info(100, 136, 75, 102));
  EXPECT_LE(Wrong(head_.Forward(features_, images), "out.pred_ori"), 0.001);
  model::SegmentationOptions options;
  options.original_size = false;
  for (ImageInfo& image : images) image.options = options;
  EXPECT_LE(Wrong(head_.Forward(features_, images), "out.pred_img"), 0.001);
}

TEST_P(UpernetTest, LogitsAreTheReferencesWhereTheyAreAskedFor) {
  std::vector<ImageInfo> images(2, Info(100, 136, 75, 102));
  model::SegmentationOptions options;
  options.logits = true;
  for (ImageInfo& image : images) image.options = options;
  const std::vector<model::Result> results = head_.Forward(features_, images);
  for (int i = 0; i < 2; ++i) {
    const model::Segmentation& map = AsMap(results[i]);
    EXPECT_TRUE(map.labels.empty());
    EXPECT_TRUE(map.areas.empty());
    ASSERT_EQ(map.logits.size(), size_t{1} * map.height * map.width * kClasses);
    const at::Tensor logits =
        at::from_blob(const_cast<float*>(map.logits.data()),
                      {map.height, map.width, kClasses});
    EXPECT_LE(
        RelativeError(logits.permute({2, 0, 1}), fixture_["out.logits"][i]),
        kTolerance);
  }
}

class SegmentationHeadAgainstReferenceTest : public model::AgainstReference {};

INSTANTIATE_TEST_SUITE_P(All, SegmentationHeadAgainstReferenceTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

TEST_P(SegmentationHeadAgainstReferenceTest, GivesLogitsOfOddSizes) {
  // Most numbers of channels are not multiples of a SIMD vector's length, which
  // is 8 or 16.
  const std::vector<int> in_channels = {5, 10, 20, 40};
  const auto head = Both([&](const auto& scope, const auto& ops) {
    return SegmentationHead(in_channels, /*channels=*/11, kClasses, scope, ops);
  });
  for (const auto& [images, height, width] :
       std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {1, 5, 97}, {3, 66, 35}}) {
    layers::Features features, own;
    for (int i = 0; i < 4; ++i) {
      const int stride = 4 << i;
      features.push_back(model::RandomValues(
          "map" + std::to_string(i),
          {images, in_channels[i], (height + stride - 1) / stride,
           (width + stride - 1) / stride}));
      own.push_back(Map(features.back()));
    }
    ExpectNear(head.tested.Pool(own.back()),
               head.reference.Pool(features.back()));
    const at::Tensor logits = LogitsOf(head.tested, own);
    EXPECT_EQ(logits.scalar_type(), at::kFloat);
    ExpectNear(logits, LogitsOf(head.reference, features));
  }
}

TEST(SegmentationHeadTest, AreasAndConfidenceAreThoseOfTheMap) {
  const c10::InferenceMode guard;
  ImageInfo image = Info(64, 80, 33, 21);
  const auto results =
      MakeRandomHead().Forward(RandomFeatures(64, 80), {image, image});
  EXPECT_TRUE(AsMap(results[0]).confidence.empty());
  model::SegmentationOptions options;
  options.confidence = true;
  image.options = options;
  const auto confident =
      MakeRandomHead().Forward(RandomFeatures(64, 80), {image, image});
  for (int i = 0; i < 2; ++i) {
    const model::Segmentation& map = AsMap(confident[i]);
    EXPECT_TRUE(map.finite);
    EXPECT_EQ(map.labels, AsMap(results[i]).labels);
    EXPECT_EQ(map.confidence.size(), 33 * 21);
    ASSERT_EQ(map.areas.size(), kClasses);
    std::vector<int64_t> areas(kClasses);
    for (const uint16_t label : map.labels) ++areas.at(label);
    EXPECT_EQ(map.areas, areas);
  }
}

TEST(SegmentationHeadTest, ANanStaysInItsImage) {
  const c10::InferenceMode guard;
  layers::Features features = RandomFeatures(64, 80);
  const std::vector<ImageInfo> images(2, Info(64, 80, 64, 80));
  const auto clean = MakeRandomHead().Forward(features, images);
  features[3][0][5][1][1] = std::numeric_limits<float>::quiet_NaN();
  const auto results = MakeRandomHead().Forward(features, images);
  EXPECT_FALSE(AsMap(results[0]).finite);
  EXPECT_TRUE(AsMap(results[0]).labels.empty());
  EXPECT_TRUE(AsMap(results[1]).finite);
  EXPECT_EQ(AsMap(results[1]).labels, AsMap(clean[1]).labels);
}

TEST(SegmentationHeadTest, ThreadsDoNotMatter) {
  const int threads = at::get_num_threads();
  const SegmentationHead head = MakeRandomHead();
  const layers::Features features = Only(RandomFeatures(300, 500), 0);
  std::vector<at::Tensor> logits;
  for (const int count : {1, 2, 3}) {
    const c10::InferenceMode guard;
    at::set_num_threads(count);
    logits.push_back(LogitsOf(head, features));
  }
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(logits[0], logits[1]));
  EXPECT_TRUE(at::equal(logits[0], logits[2]));
}

}  // namespace
}  // namespace sfmamba::heads
