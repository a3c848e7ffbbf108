// Measures how long one thread needs to encode the answer of a dense model (a
// detector or segmenter) into the bytes that are sent. In the server, the
// finish pool does this work. The last benchmark measures the resizing of a
// picture.

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "server/image/keep_ratio.h"
#include "tests/server/picture.h"
#include "tests/server/prediction/encoded_answer.h"
#include "tests/testing/line_masks.h"

namespace sfmamba::image {
namespace {

constexpr int kClasses = 150;

// Returns a map with blobs that have wavy edges, similar to objects.
model::Segmentation MakeMap(int height, int width) {
  model::Segmentation map;
  map.height = height;
  map.width = width;
  map.areas.resize(kClasses);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double u = 9.0 * x / width, v = 9.0 * y / height;
      const double level = std::sin(u + std::sin(3 * v)) +
                           std::cos(v + std::sin(5 * u)) +
                           0.1 * std::sin(40 * u) * std::sin(40 * v);
      map.labels.push_back(static_cast<int>((level + 3) * 4) % kClasses);
      map.confidence.push_back(static_cast<int>((level + 3) * 40));
      ++map.areas[map.labels.back()];
    }
  }
  return map;
}

repository::ModelDirectory DenseModel() {
  repository::ModelDirectory model;
  model.labels = std::vector<std::string>(kClasses, "label");
  model.config.detector.masks = true;
  return model;
}

// Encodes the answer to `result` repeatedly.
template <typename Params>
void Encode(benchmark::State& state, const Params& params,
            const model::Result& result, const PictureFrame& frame) {
  const repository::ModelDirectory model = DenseModel();
  const auto handler = prediction::MakeHandler(params);
  for (auto _ : state) {
    // The encoder gets a copy of the result here. The server moves the result
    // instead.
    state.PauseTiming();
    const auto encoder = handler->MakeEncoder(model, result, frame);
    state.ResumeTiming();
    benchmark::DoNotOptimize(prediction::EncodeAll(encoder.get()));
  }
}

void Segment(benchmark::State& state, v1::SegmentParams::Encoding encoding) {
  v1::SegmentParams params;
  params.set_encoding(encoding);
  Encode(state, params, MakeMap(state.range(1), state.range(0)), {});
}

void BM_SegmentPng(benchmark::State& state) {
  Segment(state, v1::SegmentParams::PNG_INDEX);
}
void BM_SegmentRle(benchmark::State& state) {
  Segment(state, v1::SegmentParams::RLE_PER_CLASS);
}
void BM_SegmentRaw(benchmark::State& state) {
  Segment(state, v1::SegmentParams::RAW_INDEX);
}
BENCHMARK(BM_SegmentPng)
    ->Args({640, 480})
    ->Args({4000, 3000})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SegmentRle)
    ->Args({640, 480})
    ->Args({4000, 3000})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SegmentRaw)
    ->Args({640, 480})
    ->Args({4000, 3000})
    ->Unit(benchmark::kMillisecond);

void BM_SegmentConfidence(benchmark::State& state) {
  v1::SegmentParams params;
  params.set_include_confidence_map(true);
  Encode(state, params, MakeMap(480, 640), {});
}
BENCHMARK(BM_SegmentConfidence)->Unit(benchmark::kMillisecond);

// Returns 100 detections. Their masks are ellipses, whose height and width are
// a third of the picture's.
model::Detections MakeDetections(int height, int width) {
  model::Detections detections;
  for (int i = 0; i < 100; ++i) {
    model::Detection detection;
    base::Mask mask;
    mask.width = width / 3;
    mask.height = height / 3;
    mask.left = i % 10 * (width - mask.width) / 10;
    mask.top = i / 10 * (height - mask.height) / 10;
    for (int y = 0; y < mask.height; ++y) {
      for (int x = 0; x < mask.width; ++x) {
        const double u = 2.0 * x / mask.width - 1,
                     v = 2.0 * y / mask.height - 1;
        mask.data.push_back(u * u + v * v < 0.9);
      }
    }
    detection.mask = std::make_shared<PixelMask>(std::move(mask));
    detection.box = {static_cast<float>(mask.left),
                     static_cast<float>(mask.top),
                     static_cast<float>(mask.left + mask.width),
                     static_cast<float>(mask.top + mask.height)};
    detections.detections.push_back(std::move(detection));
  }
  return detections;
}

void Detect(benchmark::State& state, v1::DetectParams::MaskEncoding encoding) {
  const int width = state.range(0), height = state.range(1);
  v1::DetectParams params;
  params.set_mask_encoding(encoding);
  PictureFrame frame;
  frame.picture = {height, width};
  Encode(state, params, MakeDetections(height, width), frame);
}

void BM_DetectRle(benchmark::State& state) {
  Detect(state, v1::DetectParams::COCO_RLE);
}
void BM_DetectPng(benchmark::State& state) {
  Detect(state, v1::DetectParams::PNG_CROP);
}
BENCHMARK(BM_DetectRle)
    ->Args({640, 480})
    ->Args({4000, 3000})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_DetectPng)
    ->Args({640, 480})
    ->Args({4000, 3000})
    ->Unit(benchmark::kMillisecond);

// Resizes to a detector's input. The arguments are width and height.
void BM_ResizeKeepRatio(benchmark::State& state) {
  const RgbImage image = server::Gradient(state.range(0), state.range(1));
  const PictureSize size =
      KeepRatioSize({image.height, image.width}, 800, 1333);
  for (auto _ : state) benchmark::DoNotOptimize(ResizeBilinear(image, size));
}
BENCHMARK(BM_ResizeKeepRatio)
    ->Args({640, 480})
    ->Args({4000, 3000})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sfmamba::image

BENCHMARK_MAIN();
