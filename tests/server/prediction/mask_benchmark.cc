// Measures the encoding of detection masks on one thread. Each mask is as large
// as a picture of 50 megapixels. Compares two methods. The first pastes the
// whole mask and encodes its pixels. The second is the server's method, which
// encodes the runs of each line. The time is per mask, and a request may ask
// for 1000 masks.

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "kernels/detection/mask_paste.h"
#include "kernels/detection/mask_runs.h"
#include "server/prediction/mask_encoder.h"
#include "tests/testing/encode_masks.h"

namespace sfmamba::prediction {
namespace {

constexpr int kSide = 7071;
constexpr int kCells = 28;
constexpr float kThreshold = 0.5f;

enum Shape { kEllipse, kRandomWeights, kNoise };

// Returns a mask's probabilities [kCells, kCells]. `shape` chooses an object,
// smooth values near 1/2 (as from random weights), or noise.
std::vector<float> Probabilities(Shape shape, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> noise(kCells * kCells), mask(kCells * kCells);
  for (float& value : noise) value = normal(random);
  for (int y = 0; y < kCells; ++y) {
    for (int x = 0; x < kCells; ++x) {
      const float u = (x - 13.5f) / 12, v = (y - 13.5f) / 12;
      float smooth = 0;
      for (int i = -2; i <= 2; ++i) {
        for (int k = -2; k <= 2; ++k) {
          smooth += noise[(y + i + kCells) % kCells * kCells +
                          (x + k + kCells) % kCells];
        }
      }
      const float logit = shape == kEllipse         ? 8 * (1 - u * u - v * v)
                          : shape == kRandomWeights ? 0.05f * smooth
                                                    : noise[y * kCells + x];
      mask[y * kCells + x] = 1 / (1 + std::exp(-logit));
    }
  }
  return mask;
}

kernels::MaskRunsArgs Whole(const std::vector<float>& mask) {
  kernels::MaskRunsArgs args{};
  args.mask = mask.data();
  args.side = kCells;
  args.x2 = args.y2 = kSide;
  args.threshold = kThreshold;
  args.area = kernels::MaskArea(0, 0, kSide, kSide, kSide, kSide);
  return args;
}

class KernelMask final : public model::InstanceMask {
 public:
  explicit KernelMask(std::vector<float> mask) : mask_(std::move(mask)) {}

  Bounds bounds() const override { return {0, 0, kSide, kSide}; }
  void AddRows(int begin, int end, base::LineRuns* runs) const override {
    Add(true, begin, end, runs);
  }
  void AddColumns(int begin, int end, base::LineRuns* runs) const override {
    Add(false, begin, end, runs);
  }

 private:
  void Add(bool by_rows, int begin, int end, base::LineRuns* runs) const {
    kernels::MaskRunsArgs args = Whole(mask_);
    args.by_rows = by_rows;
    args.begin = begin;
    args.end = end;
    kernels::MaskRunsCpu(args, runs);
  }

  const std::vector<float> mask_;
};

// Measures `encode` with masks of one Shape, which is the benchmark's argument.
// `encode` encodes a mask and returns the number of encoded bytes.
template <typename Encode>
void Time(benchmark::State& state, const Encode& encode) {
  double bytes = 0;
  int seed = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<float> mask =
        Probabilities(static_cast<Shape>(state.range(0)), seed++);
    state.ResumeTiming();
    bytes += encode(std::move(mask));
  }
  state.counters["bytes"] =
      benchmark::Counter(bytes, benchmark::Counter::kAvgIterations);
}

base::Mask Paste(const std::vector<float>& mask) {
  base::Mask pixels{0, 0, kSide, kSide, {}};
  pixels.data.resize(size_t{1} * kSide * kSide);
  const kernels::MaskRunsArgs args = Whole(mask);
  kernels::MaskPasteCpu({args.mask, args.side, args.x1, args.y1, args.x2,
                         args.y2, args.threshold, args.area,
                         pixels.data.data()});
  return pixels;
}

void BM_RleOfPixels(benchmark::State& state) {
  Time(state, [](const std::vector<float>& mask) {
    return base::EncodeRle(Paste(mask), 0, 0, kSide, kSide).size();
  });
}

void BM_PngOfPixels(benchmark::State& state) {
  Time(state, [](const std::vector<float>& mask) {
    const base::Mask pixels = Paste(mask);
    const auto png =
        base::EncodeGreyPng(kSide, kSide, 1, [&](int y, uint8_t* row) {
          const uint8_t* line = &pixels.data[size_t{1} * y * kSide];
          for (int x = 0; x < kSide; ++x) {
            if (x % 8 == 0) row[x / 8] = 0;
            if (line[x] != 0) row[x / 8] |= 0x80 >> x % 8;
          }
        });
    return png->size();
  });
}

void EncodeRuns(benchmark::State& state,
                v1::DetectParams::MaskEncoding encoding) {
  image::PictureFrame frame;
  frame.picture = {kSide, kSide};
  const model::Box box{0, 0, kSide, kSide};
  Time(state, [&](std::vector<float> mask) {
    const auto encoder = MakeMaskEncoder(
        encoding, std::make_shared<KernelMask>(std::move(mask)), frame, box);
    while (encoder->lines_left() > 0) {
      if (!encoder->Encode(2048).ok()) state.SkipWithError("no PNG");
    }
    v1::Detection object;
    const int64_t bytes = encoder->bytes();
    encoder->Take(&object);
    benchmark::DoNotOptimize(object);
    return bytes;
  });
}

void BM_RleOfRuns(benchmark::State& state) {
  EncodeRuns(state, v1::DetectParams::COCO_RLE);
}
void BM_PngOfRuns(benchmark::State& state) {
  EncodeRuns(state, v1::DetectParams::PNG_CROP);
}

void Shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("shape")->Unit(benchmark::kMillisecond);
  for (const Shape shape : {kEllipse, kRandomWeights, kNoise}) {
    benchmark->Arg(shape);
  }
}
BENCHMARK(BM_RleOfPixels)->Apply(Shapes);
BENCHMARK(BM_RleOfRuns)->Apply(Shapes);
BENCHMARK(BM_PngOfPixels)->Apply(Shapes);
BENCHMARK(BM_PngOfRuns)->Apply(Shapes);

}  // namespace
}  // namespace sfmamba::prediction

BENCHMARK_MAIN();
