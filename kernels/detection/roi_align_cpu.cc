#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

#include "kernels/detection/roi_align.h"

namespace sfmamba::kernels {
namespace {

// The maximum number of samples of a bin on one axis. Sample indices up to this
// value are exact in fp32.
constexpr float kMaxGrid = 1 << 23;

// A bilinear sample on one axis. Pixel `low` has weight 1 - fraction, pixel
// `high` has weight `fraction`.
struct Sample {
  int low, high;
  float fraction;
};

// The samples of a region's bins on one axis of a map. A sample is on the map
// if its position is from -1 to the map's size, in pixels.
struct AxisSamples {
  int grid;                     // Samples per bin, on and off the map.
  std::vector<Sample> samples;  // Only samples on the map, bin by bin.
  std::vector<int> begin;  // [bins + 1]: the index of a bin's first sample.
};

// Sample indices [begin, end) of a bin that include all samples on the map. If
// the region is far larger than the map, the range is much shorter than the
// bin's grid.
struct SampleRange {
  int begin, end;
};

SampleRange SamplesOnMap(float origin, float step, int grid, int extent) {
  const float last = static_cast<float>(grid);
  const float begin = std::floor((-1 - origin) / step) - 2;
  const float end = std::ceil((extent - origin) / step) + 2;
  return {static_cast<int>(std::clamp(begin, 0.0f, last)),
          static_cast<int>(std::clamp(end, 0.0f, last))};
}

// Appends one bin's samples to `axis`, except samples that are not on the map.
// All samples outside of `range` must be off the map. The bin begins at
// `origin` and is `bin` pixels long. The map has `extent` pixels on this axis.
void SampleBin(float origin, float bin, const SampleRange& range, int extent,
               AxisSamples* axis) {
  for (int k = range.begin; k < range.end; ++k) {
    const float position = origin + (k + 0.5f) * bin / axis->grid;
    if (!(position >= -1 && position <= extent)) continue;
    const float inside = std::max(position, 0.0f);
    const int low = static_cast<int>(inside);
    if (low >= extent - 1) {
      axis->samples.push_back({extent - 1, extent - 1, 0.0f});
    } else {
      axis->samples.push_back({low, low + 1, inside - low});
    }
  }
}

// Computes the samples of a region on one axis. The region extends from `from`
// to `to` in the image. The map has `extent` pixels on this axis.
void SampleAxis(float from, float to, float scale, int bins, int sampling_ratio,
                int extent, AxisSamples* axis) {
  axis->grid = 0;
  axis->samples.clear();
  axis->begin.assign(bins + 1, 0);
  // Computes the size from the scaled corners, as in torchvision. If a bin is a
  // whole number of pixels, the rounding of the size decides how many samples
  // the grid has.
  const float start = from * scale - 0.5f;
  const float size = (to * scale - 0.5f) - start;
  if (!std::isfinite(start) || !std::isfinite(size)) return;
  const float bin = size / bins;
  const bool adaptive = sampling_ratio == 0;
  axis->grid =
      adaptive ? static_cast<int>(std::clamp(std::ceil(bin), 0.0f, kMaxGrid))
               : sampling_ratio;
  if (axis->grid == 0) return;
  for (int b = 0; b < bins; ++b) {
    const float origin = start + b * bin;
    SampleRange range{0, axis->grid};
    if (adaptive) {
      range = SamplesOnMap(origin, bin / axis->grid, axis->grid, extent);
    }
    SampleBin(origin, bin, range, extent, axis);
    axis->begin[b + 1] = axis->samples.size();
  }
}

// A region's samples on both axes.
struct RegionSamples {
  AxisSamples y, x;

  void Set(const RoiAlignArgs& args, const RoiAlignArgs::Level& level,
           const float* roi) {
    SampleAxis(roi[1], roi[3], level.scale, args.out_height,
               args.sampling_ratio, level.height, &y);
    SampleAxis(roi[0], roi[2], level.scale, args.out_width, args.sampling_ratio,
               level.width, &x);
  }
};

// The bins of one axis, and the weights with which pixels enter the mean of
// each bin. A pixel's weight is a sum over the bin's samples.
struct AxisWeights {
  std::vector<RoiBin> bins;
  std::vector<float> weights;  // The weights of all bins, one after another.

  void Set(const AxisSamples& axis) {
    bins.clear();
    int total = 0;
    for (size_t b = 0; b + 1 < axis.begin.size(); ++b) {
      const Sample* begin = axis.samples.data() + axis.begin[b];
      const Sample* end = axis.samples.data() + axis.begin[b + 1];
      RoiBin bin{0, 0, nullptr};
      if (begin < end) {
        // The samples of a region with negative size run backwards.
        bin.first = std::min(begin->low, end[-1].low);
        bin.count = std::max(begin->high, end[-1].high) + 1 - bin.first;
      }
      bins.push_back(bin);
      total += bin.count;
    }
    weights.assign(total, 0.0f);
    float* values = weights.data();
    for (size_t b = 0; b < bins.size(); ++b) {
      for (int k = axis.begin[b]; k < axis.begin[b + 1]; ++k) {
        const Sample& sample = axis.samples[k];
        values[sample.low - bins[b].first] += (1 - sample.fraction) / axis.grid;
        values[sample.high - bins[b].first] += sample.fraction / axis.grid;
      }
      bins[b].weights = values;
      values += bins[b].count;
    }
  }
};

const RoiAlignArgs::Level& LevelOf(const RoiAlignArgs& args, const float* roi) {
  return args.levels[RoiLevel(roi, args.num_levels, args.finest_scale)];
}

// Adds the sample at (y, x) to out[channels].
void AddSample(const RoiAlignArgs::Level& level, int channels, const Sample& y,
               const Sample& x, float* out) {
  const auto pixel = [&](int row, int column) {
    return level.features + (int64_t{row} * level.width + column) * channels;
  };
  const float* top_left = pixel(y.low, x.low);
  const float* top_right = pixel(y.low, x.high);
  const float* bottom_left = pixel(y.high, x.low);
  const float* bottom_right = pixel(y.high, x.high);
  const float top = 1 - y.fraction, left = 1 - x.fraction;
  for (int c = 0; c < channels; ++c) {
    out[c] += top * left * top_left[c] + top * x.fraction * top_right[c] +
              y.fraction * left * bottom_left[c] +
              y.fraction * x.fraction * bottom_right[c];
  }
}

// Returns the indices of the regions, sorted by level and then from top to
// bottom. In this order, the region before has often read the same pixels, so
// they are still in the cache.
std::vector<int> ByPlace(const RoiAlignArgs& args) {
  struct Place {
    int level;
    float top;
    int index;
  };
  std::vector<Place> places(args.num_rois);
  for (int i = 0; i < args.num_rois; ++i) {
    const float* roi = args.rois + int64_t{4} * i;
    const float top = std::isfinite(roi[1]) ? roi[1] : 0;
    places[i] = {RoiLevel(roi, args.num_levels, args.finest_scale), top, i};
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.level, a.top) < std::tie(b.level, b.top);
  });
  std::vector<int> order(args.num_rois);
  for (int i = 0; i < args.num_rois; ++i) order[i] = places[i].index;
  return order;
}

}  // namespace

int RoiLevel(const float* roi, int num_levels, float finest_scale) {
  const float side = std::sqrt((roi[2] - roi[0]) * (roi[3] - roi[1]));
  const float level = std::floor(std::log2(side / finest_scale + 1e-6f));
  if (!(level > 0)) return 0;
  return level < num_levels ? static_cast<int>(level) : num_levels - 1;
}

void RoiAlignScalar(const RoiAlignArgs& args) {
  RegionSamples samples;
  float* out = args.out;
  for (int i = 0; i < args.num_rois; ++i) {
    const float* roi = args.rois + int64_t{4} * i;
    const RoiAlignArgs::Level& level = LevelOf(args, roi);
    samples.Set(args, level, roi);
    const AxisSamples &y = samples.y, &x = samples.x;
    const float count = std::max(float(y.grid) * x.grid, 1.0f);
    for (int row = 0; row < args.out_height; ++row) {
      for (int column = 0; column < args.out_width; ++column) {
        std::fill_n(out, args.channels, 0.0f);
        for (int j = y.begin[row]; j < y.begin[row + 1]; ++j) {
          for (int k = x.begin[column]; k < x.begin[column + 1]; ++k) {
            AddSample(level, args.channels, y.samples[j], x.samples[k], out);
          }
        }
        for (int c = 0; c < args.channels; ++c) out[c] /= count;
        out += args.channels;
      }
    }
  }
}

void RoiAlignCpu(const RoiAlignArgs& args, CpuIsa isa) {
  if (isa == CpuIsa::kScalar) return RoiAlignScalar(args);
  const auto align_region =
      isa == CpuIsa::kAvx512 ? AlignRegionAvx512 : AlignRegionAvx2;
  const int64_t values =
      int64_t{args.out_height} * args.out_width * args.channels;
  RegionSamples samples;
  AxisWeights rows, columns;
  for (int i : ByPlace(args)) {
    const float* roi = args.rois + int64_t{4} * i;
    const RoiAlignArgs::Level& level = LevelOf(args, roi);
    samples.Set(args, level, roi);
    rows.Set(samples.y);
    columns.Set(samples.x);
    align_region(args, level, rows.bins.data(), columns.bins.data(),
                 args.out + i * values);
  }
}

}  // namespace sfmamba::kernels
