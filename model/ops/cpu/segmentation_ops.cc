#include <algorithm>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/segmentation/conv3x3_after_resize.h"
#include "kernels/segmentation/segmentation_argmax.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/parallel.h"

namespace sfmamba::ops {
namespace {

// Each thread gets at least this many logits. They take about 50 us, which is
// longer than waking a thread.
constexpr int64_t kGrainLogits = 1 << 19;

}  // namespace

void SegmentationArgmax(const at::Tensor& logits, int input_height,
                        int input_width, bool confidence,
                        model::Segmentation* out) {
  const at::Tensor channels_last = logits.permute({1, 2, 0}).contiguous();
  const int64_t classes = logits.size(0);
  const int64_t pixels = int64_t{out->height} * out->width;
  out->labels.resize(pixels);
  out->confidence.resize(confidence ? pixels : 0);
  out->areas.assign(classes, 0);
  absl::Mutex mu;  // Guards out->areas.
  const int64_t grain =
      std::max<int64_t>(1, kGrainLogits / (out->width * classes));
  ParallelFor(out->height, grain, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> areas(classes);
    kernels::SegmentationArgmaxArgs args{};
    args.logits = channels_last.const_data_ptr<float>();
    args.height = logits.size(1);
    args.width = logits.size(2);
    args.classes = classes;
    args.input_height = input_height;
    args.input_width = input_width;
    args.out_height = out->height;
    args.out_width = out->width;
    args.row_begin = begin;
    args.row_end = end;
    args.labels = out->labels.data();
    args.confidence = confidence ? out->confidence.data() : nullptr;
    args.areas = areas.data();
    kernels::SegmentationArgmaxCpu(args);
    // Sums of integers do not depend on the order in which threads add.
    absl::MutexLock lock(&mu);
    for (int64_t k = 0; k < classes; ++k) out->areas[k] += areas[k];
  });
}

void AddConv3x3AfterResize(const at::Tensor& taps, at::Tensor& y) {
  TORCH_CHECK(
      taps.is_contiguous() && y.is_contiguous(at::MemoryFormat::ChannelsLast),
      "expected contiguous taps and a channels-last result");
  const int64_t channels = y.size(1), height = y.size(2), width = y.size(3);
  kernels::Conv3x3AfterResizeArgs args{};
  args.in_height = taps.size(1);
  args.in_width = taps.size(2);
  args.channels = channels;
  args.height = height;
  args.width = width;
  for (int64_t i = 0; i < y.size(0); ++i) {
    args.taps = taps.const_data_ptr<float>() + i * taps.stride(0);
    args.y = y.data_ptr<float>() + i * channels * height * width;
    ParallelFor(height, /*grain=*/1, [&](int64_t begin, int64_t end) {
      kernels::Conv3x3AfterResizeArgs rows = args;
      rows.row_begin = begin;
      rows.row_end = end;
      kernels::Conv3x3AfterResizeCpu(rows);
    });
  }
}

}  // namespace sfmamba::ops
