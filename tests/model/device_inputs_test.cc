// Tests how an emulated GPU handles a classifier's inputs: uint8 pixels, float
// values, and the options of each image.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/model/device_model_fixture.h"
#include "tests/model/emulated_device.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/planes.h"
#include "tests/testing/run_model.h"

namespace sfmamba::model {
namespace {

TEST_F(DeviceModelTest, ValuesArePaddedAndRecordedToo) {
  const ModelConfig config = Config();
  const auto model = MakeModel(config, OnGpu());
  const auto context = MakeContext(*model);
  std::vector<float> values(pixels_.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t channel = i % 3, pixel = i / 3;
    values[channel * kSide * kSide + pixel] =
        (pixels_[i] / 255.0f - config.mean[channel]) / config.std[channel];
  }
  std::vector<ModelInput> images = Images(9);
  for (ModelInput& image : images) {
    image.pixels = nullptr;
    image.values = values.data();
  }
  const std::vector<float> expected = Expected();
  for (int run = 0; run < 3; ++run) {
    RunInfo info;
    const auto logits = Of(RunBatch(*context, images, &info));
    EXPECT_EQ(info.padded_images, 10);
    ASSERT_EQ(logits.size(), 9);
    for (const auto& own : logits) {
      EXPECT_LE(LargestDifference(own, expected), 1e-4);
    }
  }
  EXPECT_EQ(recorded(), 1);
  EXPECT_EQ(replayed(), 2);
  // Batches of uint8 pixels and batches of float values have separate buffers
  // and graphs. A larger batch of values needs larger buffers for values. The
  // graphs for pixels must not be deleted then.
  ExpectRight(*context, 9);
  images.resize(12, images[0]);
  EXPECT_TRUE(RunBatch(*context, images).ok());
  ExpectRight(*context, 9);
  EXPECT_EQ(recorded(), 3);
  EXPECT_EQ(replayed(), 3);
}

TEST_F(DeviceModelTest, ABatchOfPixelsAndValuesIsAnswered) {
  const auto model = MakeModel(Config(), OnGpu());
  std::vector<float> values(pixels_.size());
  std::vector<ModelInput> images = Images(2);
  images[1].pixels = nullptr;
  images[1].values = values.data();
  const auto logits = Of(RunBatch(*MakeContext(*model), images));
  ASSERT_EQ(logits.size(), 2);
  EXPECT_LE(LargestDifference(logits[0], Expected()), 1e-4);
}

TEST_F(DeviceModelTest, ABatchWithAHeatMapIsAnsweredWithoutAGraph) {
  const auto model = MakeModel(Config(), OnGpu());
  const auto context = MakeContext(*model);
  for (int run = 0; run < 2; ++run) ExpectRight(*context, 3);
  std::vector<ModelInput> images = Images(3);
  images[1].options = ClassificationOptions{/*heat_map=*/true, {4}};
  const auto results = RunBatch(*context, images);
  const std::vector<float> expected = Expected();
  for (const std::vector<float>& own : Of(results)) {
    EXPECT_LE(LargestDifference(own, expected), 1e-4);
  }
  EXPECT_EQ(replayed(), 1);
  const auto& asked = std::get<Classification>((*results)[1]);
  EXPECT_EQ(asked.heat_map.class_id, 4);
  ASSERT_EQ(asked.heat_map.values.size(), 1);
  EXPECT_NEAR(asked.heat_map.values[0], asked.logits[4], 1e-5);
  EXPECT_TRUE(std::get<Classification>((*results)[0]).heat_map.values.empty());
}

// The server requests embeddings from the model only if a client's request asks
// for them.
TEST_F(DeviceModelTest, ABatchWithoutEmbeddingsIsAnsweredByAGraph) {
  const auto model = MakeModel(Config(), OnGpu());
  const auto context = MakeContext(*model);
  for (int run = 0; run < 2; ++run) ExpectRight(*context, 3);
  std::vector<ModelInput> images = Images(3);
  for (ModelInput& image : images) {
    image.options =
        ClassificationOptions{/*heat_map=*/false, {}, /*embedding=*/false};
  }
  const auto results = RunBatch(*context, images);
  EXPECT_TRUE(std::get<Classification>((*results)[0]).embedding.empty());
  EXPECT_LE(LargestDifference(Of(results)[0], Expected()), 1e-4);
  EXPECT_EQ(replayed(), 2);
}

// One graph must serve all batches, with any mix of interleaved and planar
// pixels.
TEST_F(DeviceModelTest, ABatchMayMixPixelsAndPlanes) {
  const auto model = MakeModel(Config(), OnGpu());
  const auto context = MakeContext(*model);
  const auto memory = model->AllocateInputs(pixels_.size());
  const std::vector<uint8_t> planes = PlanesOf(pixels_);
  std::copy(planes.begin(), planes.end(), memory.get());
  const std::vector<float> expected = Of(RunBatch(*context, Images(9)))[0];
  for (const std::vector<int>& planar :
       std::vector<std::vector<int>>{{1, 8}, {}, {0, 4, 5}}) {
    for (const bool page_locked : {false, true}) {
      std::vector<ModelInput> images = Images(9);
      for (const int i : planar) {
        images[i].planar = true;
        images[i].page_locked = page_locked;
        images[i].pixels = page_locked ? memory.get() : planes.data();
      }
      for (const auto& logits : Of(RunBatch(*context, images))) {
        EXPECT_EQ(logits, expected);
      }
    }
  }
  EXPECT_EQ(recorded(), 1);
  EXPECT_EQ(replayed(), 6);
}

// A batch with a heat map, or with pixels and values, runs without a graph.
TEST_F(DeviceModelTest, PlanesAreReadWithoutAGraphToo) {
  const auto model = MakeModel(Config(), OnGpu());
  const auto context = MakeContext(*model);
  const std::vector<uint8_t> planes = PlanesOf(pixels_);
  const std::vector<float> values(pixels_.size());
  for (const bool with_values : {false, true}) {
    std::vector<ModelInput> images = Images(3);
    images[1].pixels = planes.data();
    images[1].planar = true;
    if (with_values) {
      images[2].pixels = nullptr;
      images[2].values = values.data();
    } else {
      images[2].options = ClassificationOptions{/*heat_map=*/true, {4}};
    }
    const auto logits = Of(RunBatch(*context, images));
    ASSERT_EQ(logits.size(), 3);
    EXPECT_EQ(logits[1], logits[0]);
    EXPECT_LE(LargestDifference(logits[0], Expected()), 1e-4);
  }
  EXPECT_EQ(recorded(), 0);
}

// A dense model's images may have odd sizes and are padded on the device. The
// later images of a batch may then begin at any address.
TEST_F(DeviceModelTest, PlanesOfAnOddSizeAreAnsweredAsPixels) {
  constexpr int kHeight = 59, kWidth = 91, kImages = 3;
  ModelConfig config = *VariantConfig("custom", VisionTask::kSegmentation);
  config.backbone = SmallModel().backbone;
  config.backbone.windows = {8, 4};
  config.backbone.output_norms = true;
  config.num_classes = 6;
  config.segmentation_channels = 16;
  const auto model = MakeModel(config, OnGpu());
  const auto context = MakeContext(*model);
  std::vector<std::vector<uint8_t>> pixels, planes;
  for (int n = 0; n < kImages; ++n) {
    pixels.emplace_back(3 * kHeight * kWidth);
    for (size_t i = 0; i < pixels[n].size(); ++i) pixels[n][i] = (7 + n) * i;
    planes.push_back(PlanesOf(pixels[n]));
  }
  SegmentationOptions options;
  options.logits = true;
  ModelInput image;
  image.height = image.original_height = kHeight;
  image.width = image.original_width = kWidth;
  image.options = options;
  std::vector<ModelInput> images(kImages, image);
  const auto logits_of = [&](const std::vector<bool>& planar) {
    for (int i = 0; i < kImages; ++i) {
      images[i].planar = planar[i];
      images[i].pixels = (planar[i] ? planes : pixels)[i].data();
    }
    const auto results = RunBatch(*context, images);
    EXPECT_TRUE(results.ok()) << results.status();
    std::vector<std::vector<float>> logits;
    for (const Result& result : *results) {
      logits.push_back(std::get<Segmentation>(result).logits);
    }
    return logits;
  };
  const auto expected = logits_of({false, false, false});
  ASSERT_EQ(expected.size(), kImages);
  EXPECT_FALSE(expected[0].empty());
  EXPECT_EQ(logits_of({true, false, true}), expected);
  EXPECT_EQ(logits_of({false, true, true}), expected);
}

// Another GPU may be used by another process. An allocation on it would take
// that process's memory.
TEST_F(DeviceModelTest, PageLockedMemoryIsAllocatedByTheModelsGpu) {
  for (const int gpu : {1, 0}) {
    ModelOptions options = OnGpu();
    options.gpus = {gpu};
    EXPECT_NE(MakeModel(Config(), options)->AllocateInputs(100), nullptr);
    EXPECT_EQ(emulated::gpu_of_host_memory(), gpu);
  }
}

// A picture in pinned memory is copied directly to the device. Other pictures
// are first collected in a buffer.
TEST_F(DeviceModelTest, PageLockedPixelsAreNotGathered) {
  const auto model = MakeModel(Config(), OnGpu());
  const auto context = MakeContext(*model);
  const auto memory = model->AllocateInputs(pixels_.size());
  std::copy(pixels_.begin(), pixels_.end(), memory.get());
  std::vector<uint8_t> noise(pixels_.size(), 99);
  // Each case lists the images in pinned memory and the expected number of
  // copies. Each of these images is copied alone. All images between two of
  // them are one copy. The last copy contains the images after the last one in
  // pinned memory, if any, and the layouts (interleaved or planar) of all
  // images.
  for (const auto& [locked, copies] :
       std::vector<std::pair<std::vector<int>, int>>{
           {{}, 1}, {{0, 1, 2, 3, 4}, 6}, {{1, 3}, 5}, {{0, 1}, 3}}) {
    std::vector<ModelInput> images = Images(5);
    images[4].pixels = noise.data();
    for (const int i : locked) {
      images[i].page_locked = true;
      if (i < 4) images[i].pixels = memory.get();
    }
    const int before = emulated::copies_in();
    const auto logits = Of(RunBatch(*context, images));
    EXPECT_EQ(emulated::copies_in() - before, copies);
    const std::vector<float> expected = Expected();
    ASSERT_EQ(logits.size(), 5);
    for (int i = 0; i < 4; ++i) {
      EXPECT_LE(LargestDifference(logits[i], expected), 1e-4);
    }
    EXPECT_GT(LargestDifference(logits[4], expected), 1e-3);
  }
}

}  // namespace
}  // namespace sfmamba::model
