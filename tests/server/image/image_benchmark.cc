// Measures how long one thread needs to turn a photograph's bytes into the
// model's input. This is the work of the decode pool. A thread handles 1 /
// (decode + preprocess) requests per second.

#include <cstdint>
#include <cstdio>  // jpeglib.h needs FILE and size_t.
#include <string>

#include "base/image_decoder.h"
#include "benchmark/benchmark.h"
#include "jpeglib.h"
#include "server/image/image.h"
#include "tests/server/picture.h"

namespace sfmamba::image {
namespace {

// Returns a smooth picture with some texture, so that its JPEG has a usual
// size.
RgbImage Photograph(int width, int height) {
  RgbImage image = server::Gradient(width, height);
  uint32_t noise = 1;
  for (uint8_t& byte : image.data) {
    noise = noise * 1664525u + 1013904223u;
    byte = byte * 7 / 8 + (noise >> 28);
  }
  return image;
}

std::string Jpeg(int width, int height) {
  const RgbImage image = Photograph(width, height);
  return server::EncodeJpeg(
      width, height, 3, image.data.data(),
      [](jpeg_compress_struct& c) { jpeg_set_quality(&c, 85, TRUE); });
}

void BM_ReadHeader(benchmark::State& state) {
  const std::string bytes = Jpeg(1000, 667);
  for (auto _ : state) {
    benchmark::DoNotOptimize(base::ReadImageHeader(bytes, ImageLimits()));
  }
}
BENCHMARK(BM_ReadHeader);

// The arguments are width, height and min_side.
void BM_DecodeJpeg(benchmark::State& state) {
  const std::string bytes = Jpeg(state.range(0), state.range(1));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        base::DecodeImage(bytes, ImageLimits(), true, state.range(2)));
  }
  state.counters["bytes"] = bytes.size();
}
BENCHMARK(BM_DecodeJpeg)
    ->Args({1000, 667, 0})
    ->Args({1000, 667, 224})
    ->Args({600, 400, 0})
    ->Args({600, 400, 200})
    ->Unit(benchmark::kMillisecond);

void BM_DecodePng(benchmark::State& state) {
  const std::string bytes = server::EncodePng(Photograph(1000, 667));
  for (auto _ : state) {
    benchmark::DoNotOptimize(base::DecodeImage(bytes, ImageLimits(), true, 0));
  }
}
BENCHMARK(BM_DecodePng)->Unit(benchmark::kMillisecond);

void BM_DecodeWebp(benchmark::State& state) {
  const std::string bytes = server::EncodeWebp(Photograph(1000, 667), false);
  for (auto _ : state) {
    benchmark::DoNotOptimize(base::DecodeImage(bytes, ImageLimits(), true, 0));
  }
}
BENCHMARK(BM_DecodeWebp)->Unit(benchmark::kMillisecond);

// Resizes to 224. The arguments are width and height.
void BM_Preprocess(benchmark::State& state) {
  const RgbImage image = Photograph(state.range(0), state.range(1));
  for (auto _ : state) {
    benchmark::DoNotOptimize(Preprocess(image, PreprocessOptions()));
  }
}
BENCHMARK(BM_Preprocess)
    ->Args({1000, 667})
    ->Args({500, 334})  // A 1000 x 667 JPEG decoded at 1/2.
    ->Args({600, 400})
    ->Args({7071, 7071})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sfmamba::image

BENCHMARK_MAIN();
