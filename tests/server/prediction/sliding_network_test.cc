// Compares the default segmenter's sliding windows with PyTorch's results. See
// tools/pytorch/record_slide.py.

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/segmentation/window_average.h"
#include "model/vision_model.h"
#include "server/image/keep_ratio.h"
#include "server/prediction/sliding/sliding_map.h"
#include "server/repository/model_directory.h"
#include "tests/server/picture.h"
#include "tests/testing/fixture.h"
#include "tests/testing/run_model.h"

namespace sfmamba::prediction {
namespace {

using image::PictureSize;

constexpr int kEvery = 8;  // The recording has every eighth pixel's logits.

class SlidingNetworkTest : public testing::TestWithParam<bool> {
 protected:
  SlidingNetworkTest() : fixture_("slide") {
    const at::Tensor sizes = fixture_["network.sizes"];
    const int64_t* side = sizes.const_data_ptr<int64_t>();
    for (PictureSize* size : {&input_, &window_, &stride_, &picture_}) {
      size->height = *side++;
      size->width = *side++;
    }
  }

  // Returns the picture as the network receives it.
  image::RgbImage Input(const model::ModelConfig& config) const {
    image::RgbImage picture{picture_.width, picture_.height, {}};
    const at::Tensor pixels = fixture_["network.picture"];
    picture.data.assign(pixels.const_data_ptr<uint8_t>(),
                        pixels.const_data_ptr<uint8_t>() + pixels.numel());
    const PictureSize size =
        image::KeepRatioSize(picture_, config.short_side, config.long_side);
    EXPECT_EQ(size.height, input_.height);
    EXPECT_EQ(size.width, input_.width);
    return image::ResizeBilinear(std::move(picture), size);
  }

  const Fixture fixture_;
  PictureSize input_, window_, stride_, picture_;
};

INSTANTIATE_TEST_SUITE_P(Forms, SlidingNetworkTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "Reference" : "Cpu";
                         });

TEST_P(SlidingNetworkTest, LogitsAndMapAreTheReferences) {
  const auto directory =
      repository::ReadModelDirectory({"models/everyday_segmenter/1", ""});
  ASSERT_TRUE(directory.ok()) << directory.status();
  model::ModelOptions options;
  options.reference = GetParam();
  const auto network = model::VisionModel::Load(
      directory->config, directory->weights_paths, options);
  ASSERT_TRUE(network.ok()) << network.status();
  const image::RgbImage input = Input(directory->config);
  const int classes = directory->config.num_classes;

  const SlideGrid grid(input_, window_, stride_);
  SlidingMap map(grid, classes, picture_, /*confidence=*/false);
  std::vector<model::Segmentation> logits;
  for (int i = 0; i < grid.windows(); ++i) {
    const image::RgbImage window = server::Crop(input, grid.Region(i));
    model::ModelInput image;
    image.height = window.height;
    image.width = window.width;
    image.pixels = window.data.data();
    model::SegmentationOptions segmentation;
    segmentation.logits = true;
    image.options = segmentation;
    auto results = model::RunBatch(**network, {image});
    ASSERT_TRUE(results.ok()) << results.status();
    logits.push_back(std::get<model::Segmentation>(results->front()));
    map.Add(i, logits.back());
    while (map.IsReady()) map.ComputeNext();
  }

  const kernels::ResizeTaps rows = kernels::ComposeResizes(
      logits[0].height, logits[0].height, window_.height);
  const kernels::ResizeTaps columns =
      kernels::ComposeResizes(logits[0].width, logits[0].width, window_.width);
  const at::Tensor expected = fixture_["network.mean"];
  const double spread = (expected.max() - expected.min()).item<double>();
  std::vector<float> mean(input_.width * classes);
  for (int row = 0; row < input_.height; row += kEvery) {
    std::vector<kernels::WindowAverageArgs::Window> windows;
    for (int i = 0; i < grid.windows(); ++i) {
      const image::PixelRect region = grid.Region(i);
      if (region.top > row || row >= region.top + region.height) continue;
      windows.push_back({logits[i].logits.data(), region.top, region.left});
    }
    kernels::WindowAverageArgs args{};
    args.windows = windows.data();
    args.count = windows.size();
    args.width = logits[0].width;
    args.classes = classes;
    args.rows = &rows;
    args.columns = &columns;
    args.row = row;
    args.picture_width = input_.width;
    args.average = mean.data();
    kernels::WindowAverageCpu(args);
    for (int x = 0; x < input_.width; x += kEvery) {
      for (int k = 0; k < classes; ++k) {
        ASSERT_NEAR(mean[x * classes + k],
                    expected[k][row / kEvery][x / kEvery].item<float>(),
                    1e-4 * spread)
            << "class " << k << " at " << row << ", " << x;
      }
    }
  }

  ASSERT_TRUE(map.done());
  const model::Segmentation labels = map.Take();
  const at::Tensor recorded = fixture_["network.map"];
  int different = 0;
  for (size_t i = 0; i < labels.labels.size(); ++i) {
    different += labels.labels[i] != recorded.const_data_ptr<uint8_t>()[i];
  }
  EXPECT_LE(different, 3) << "of " << picture_.pixels() << " pixels";
}

}  // namespace
}  // namespace sfmamba::prediction
