#include <vector>

#include "ATen/ops/empty.h"
#include "kernels/detection/roi_align.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/detection_checks.h"
#include "model/ops/parallel.h"

namespace sfmamba::ops {

at::Tensor RoiAlign(const std::vector<at::Tensor>& maps,
                    const std::vector<int>& strides, const at::Tensor& rois,
                    int size, float finest_scale) {
  CheckRoiMaps(maps, strides);
  const int64_t channels = maps[0].size(0);
  kernels::RoiAlignArgs args{};
  args.num_levels = static_cast<int>(maps.size());
  for (size_t i = 0; i < maps.size(); ++i) {
    kernels::RoiAlignArgs::Level& level = args.levels[i];
    level.features = maps[i].const_data_ptr<float>();
    level.height = static_cast<int>(maps[i].size(1));
    level.width = static_cast<int>(maps[i].size(2));
    level.scale = 1.0f / static_cast<float>(strides[i]);
  }
  args.channels = static_cast<int>(channels);
  args.finest_scale = finest_scale;
  args.out_height = args.out_width = size;

  const at::Tensor boxes = rois.contiguous();
  const at::Tensor out =
      at::empty({rois.size(0), size, size, channels}, maps[0].options());
  const int64_t values = int64_t{size} * size * channels;
  ParallelFor(rois.size(0), /*grain=*/1, [&](int64_t begin, int64_t end) {
    kernels::RoiAlignArgs part = args;
    part.num_rois = static_cast<int>(end - begin);
    part.rois = boxes.const_data_ptr<float>() + 4 * begin;
    part.out = out.data_ptr<float>() + values * begin;
    kernels::RoiAlignCpu(part);
  });
  return out.permute({0, 3, 1, 2});
}

}  // namespace sfmamba::ops
