#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/argsort.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/matmul.h"
#include "ATen/ops/maximum.h"
#include "ATen/ops/minimum.h"
#include "ATen/ops/nan_to_num.h"
#include "ATen/ops/stack.h"
#include "ATen/ops/tensor.h"
#include "ATen/ops/zeros.h"
#include "model/ops/detection_checks.h"
#include "model/ops/reference/reference_implementation.h"

namespace sfmamba::ops {
namespace {

// A region's corners in pixels of the image.
struct Region {
  float x1, y1, x2, y2;
};

Region RegionAt(const at::Tensor& rois, int64_t i) {
  const auto value = [&](int64_t k) { return rois[i][k].item<float>(); };
  return {value(0), value(1), value(2), value(3)};
}

// Returns the index of the map that a region reads (FPN, arXiv 1612.03144,
// equation 1).
int64_t LevelOf(const Region& region, float finest_scale, int64_t levels) {
  const float side =
      std::sqrt((region.x2 - region.x1) * (region.y2 - region.y1));
  const float level = std::floor(std::log2(side / finest_scale + 1e-6f));
  if (!(level > 0)) return 0;  // The level may be a NaN.
  return std::min(static_cast<int64_t>(level), levels - 1);
}

// Divides one axis of a region, from `low` to `high`, into bins. The value of a
// bin is the mean of its bilinear samples. This mean is a weighted sum of the
// map's pixels along the axis. Returns the weights [bins, pixels]. Samples that
// are more than a pixel outside of the map count as 0. The temporary memory is
// proportional to high - low.
at::Tensor BinWeights(float low, float high, float scale, int bins,
                      int64_t pixels) {
  const float start = low * scale - 0.5f;
  const float size = (high * scale - 0.5f) - start;
  const float bin = size / static_cast<float>(bins);
  const float samples = std::ceil(bin);  // Samples in each bin.
  if (!std::isfinite(start) || !std::isfinite(size) || !(samples > 0)) {
    return at::zeros({bins, pixels});
  }
  const at::Tensor origin = at::arange(bins, at::kFloat) * bin + start;
  const at::Tensor offset =
      (at::arange(static_cast<int64_t>(samples), at::kFloat) + 0.5) * bin /
      samples;
  const at::Tensor at = origin.view({-1, 1, 1}) + offset.view({1, -1, 1});
  const at::Tensor on_map = (at >= -1).logical_and(at <= pixels);
  const at::Tensor distance =
      (at.clamp(0, pixels - 1) - at::arange(pixels, at::kFloat)).abs();
  return ((1 - distance).clamp_min(0) * on_map).mean(1);
}

// Returns the features [C, size, size] of a region of map [C, H, W]. The
// samples of a bin form a grid. Their mean can therefore be computed along y
// first and then along x.
at::Tensor AlignedRegion(const at::Tensor& map, float scale,
                         const Region& region, int size) {
  const at::Tensor rows =
      BinWeights(region.y1, region.y2, scale, size, map.size(1));
  const at::Tensor columns =
      BinWeights(region.x1, region.x2, scale, size, map.size(2));
  return at::matmul(at::matmul(rows, map), columns.t());
}

// Shifts the boxes [n, 4] of each group by a different distance, so that boxes
// of two groups never overlap. The rounding of this shift is part of the
// definition (docs/heads.md, "Non-maximum suppression").
at::Tensor Shifted(const at::Tensor& boxes, const at::Tensor& groups) {
  if (!groups.defined()) return boxes;
  const at::Tensor apart = boxes.max().clamp_min(0) + 1;
  return boxes + (groups.to(at::kFloat) * apart).unsqueeze(1);
}

at::Tensor Areas(const at::Tensor& boxes) {
  return (boxes.select(1, 2) - boxes.select(1, 0)) *
         (boxes.select(1, 3) - boxes.select(1, 1));
}

// Returns the IoU of box [4] with each of boxes [n, 4].
at::Tensor Ious(const at::Tensor& box, const at::Tensor& boxes) {
  const at::Tensor sides =
      (at::minimum(boxes.narrow(1, 2, 2), box.narrow(0, 2, 2)) -
       at::maximum(boxes.narrow(1, 0, 2), box.narrow(0, 0, 2)))
          .clamp_min(0);
  const at::Tensor overlap = sides.select(1, 0) * sides.select(1, 1);
  return overlap / (Areas(box.unsqueeze(0)) + Areas(boxes) - overlap);
}

}  // namespace

at::Tensor ReferenceImplementation::RoiMap(const at::Tensor& map) const {
  return map.contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor ReferenceImplementation::RoiAlign(
    const std::vector<at::Tensor>& maps, const std::vector<int>& strides,
    const at::Tensor& rois, int size, float finest_scale) const {
  CheckRoiMaps(maps, strides);
  const int64_t count = rois.size(0);
  const at::Tensor out =
      at::empty({count, maps[0].size(0), size, size}, maps[0].options())
          .contiguous(at::MemoryFormat::ChannelsLast);
  for (int64_t i = 0; i < count; ++i) {
    const Region region = RegionAt(rois, i);
    const int64_t level = LevelOf(region, finest_scale, maps.size());
    const float scale = 1.0f / static_cast<float>(strides[level]);
    out[i].copy_(AlignedRegion(maps[level], scale, region, size));
  }
  return out;
}

at::Tensor ReferenceImplementation::Nms(const at::Tensor& boxes,
                                        const at::Tensor& scores,
                                        const at::Tensor& groups,
                                        float iou_threshold,
                                        int64_t max_kept) const {
  CheckNmsInputs(boxes, scores, groups);
  if (boxes.size(0) == 0) return at::empty({0}, at::kLong);
  const at::Tensor shifted = Shifted(boxes, groups);
  // NaN scores must come last, as in the kernels. argsort() would put them
  // first.
  const double lowest = -std::numeric_limits<double>::infinity();
  at::Tensor left =
      at::argsort(at::nan_to_num(scores, lowest), /*stable=*/true, /*dim=*/0,
                  /*descending=*/true);
  std::vector<int64_t> kept;
  while (left.size(0) > 0 && static_cast<int64_t>(kept.size()) < max_kept) {
    const int64_t best = left[0].item<int64_t>();
    kept.push_back(best);
    left = left.slice(0, 1);
    const at::Tensor ious = Ious(shifted[best], shifted.index_select(0, left));
    left = left.masked_select((ious > iou_threshold).logical_not());
  }
  return at::tensor(kept, at::kLong);
}

}  // namespace sfmamba::ops
