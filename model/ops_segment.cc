#include <algorithm>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/mask_paste.h"
#include "kernels/resized_conv3x3.h"
#include "kernels/segmentation_argmax.h"
#include "model/ops.h"
#include "model/parallel.h"

namespace sfmamba::ops {
namespace {

// What a thread should have to itself before another is woken for the rest:
// some 50 us of either kernel.
constexpr int64_t kGrainMasks = 4;
constexpr int64_t kGrainLogits = 1 << 19;

}  // namespace

std::vector<InstanceMask> PasteMasks(const at::Tensor& masks,
                                     const at::Tensor& boxes, float threshold,
                                     int picture_height, int picture_width) {
  const at::Tensor probabilities = masks.contiguous();
  const at::Tensor corners = boxes.contiguous();
  const int64_t side = masks.size(2);
  std::vector<InstanceMask> pasted(masks.size(0));
  ParallelFor(masks.size(0), kGrainMasks, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* box = corners.const_data_ptr<float>() + 4 * i;
      const PixelRect area = MaskArea(box[0], box[1], box[2], box[3],
                                      picture_height, picture_width);
      InstanceMask& mask = pasted[i];
      mask.left = area.left;
      mask.top = area.top;
      mask.width = area.width();
      mask.height = area.height();
      mask.data.resize(int64_t{mask.width} * mask.height);
      MaskPasteCpu({probabilities.const_data_ptr<float>() + i * side * side,
                    static_cast<int>(side), box[0], box[1], box[2], box[3],
                    threshold, area, mask.data.data()});
    }
  });
  return pasted;
}

void SegmentationArgmax(const at::Tensor& logits, int input_height,
                        int input_width, bool confidence, Segmentation* out) {
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
    SegmentationArgmaxArgs args{};
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
    SegmentationArgmaxCpu(args);
    // Sums of whole numbers: the order does not matter.
    absl::MutexLock lock(&mu);
    for (int64_t k = 0; k < classes; ++k) out->areas[k] += areas[k];
  });
}

void AddResizedConv3x3(const at::Tensor& taps, at::Tensor& y) {
  TORCH_CHECK(
      taps.is_contiguous() && y.is_contiguous(at::MemoryFormat::ChannelsLast),
      "expected contiguous taps and a channels-last result");
  const int64_t channels = y.size(1), height = y.size(2), width = y.size(3);
  ResizedConv3x3Args args{};
  args.in_height = taps.size(1);
  args.in_width = taps.size(2);
  args.channels = channels;
  args.height = height;
  args.width = width;
  for (int64_t i = 0; i < y.size(0); ++i) {
    args.taps = taps.const_data_ptr<float>() + i * taps.stride(0);
    args.y = y.data_ptr<float>() + i * channels * height * width;
    ParallelFor(height, /*grain=*/1, [&](int64_t begin, int64_t end) {
      ResizedConv3x3Args rows = args;
      rows.row_begin = begin;
      rows.row_end = end;
      ResizedConv3x3Cpu(rows);
    });
  }
}

}  // namespace sfmamba::ops
