#include "server/repository/golden_images.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace sfmamba::repository {
namespace {

constexpr int kImages = 4;
// The number of images that MadeUpImages() returns for detectors and
// segmenters. The number is smaller than kImages, because these models are
// slow.
constexpr int kDenseImages = 2;

// Returns a wave pattern whose wavelengths and colours depend on `number`.
std::vector<uint8_t> MakePixels(int number, int height, int width) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        const int wave = x * (3 + 2 * number) + y * (5 + number) +
                         37 * channel * (x / 16 + y / 16);
        pixels.push_back(static_cast<uint8_t>(wave & 255));
      }
    }
  }
  return pixels;
}

}  // namespace

std::vector<batching::Executor::Probe> MadeUpImages(
    const model::ModelConfig& config) {
  const int count = config.task == model::VisionTask::kClassification
                        ? kImages
                        : kDenseImages;
  std::vector<batching::Executor::Probe> images;
  for (int i = 0; i < count; ++i) {
    batching::Executor::Probe image = BlackProbe(config);
    image.pixels = MakePixels(i, image.height, image.width);
    image.check = [](const model::Result&) { return absl::OkStatus(); };
    images.push_back(std::move(image));
  }
  return images;
}

absl::StatusOr<std::vector<GoldenImage>> AnswerGoldenImages(
    model::VisionModel& model) {
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> context =
      model.MakeContext(0);
  if (!context.ok()) return context.status();
  const batching::Executor::Probe black = BlackProbe(model.config());
  std::vector<GoldenImage> images;
  for (int i = 0; i < kImages; ++i) {
    GoldenImage image;
    image.height = black.height;
    image.width = black.width;
    image.pixels = MakePixels(i, image.height, image.width);
    model::ModelInput input;
    input.height = image.height;
    input.width = image.width;
    input.pixels = image.pixels.data();
    model::RunInfo info;
    absl::Status status = (*context)->Run(
        absl::MakeConstSpan(&input, 1), &info,
        [&image](model::Result result) { image.result = std::move(result); });
    if (status.ok()) status = black.check(image.result);
    if (!status.ok()) return status;
    images.push_back(std::move(image));
  }
  return images;
}

}  // namespace sfmamba::repository
