#include <algorithm>
#include <vector>

#include "ATen/ops/empty.h"
#include "ATen/ops/from_blob.h"
#include "ATen/ops/zeros.h"
#include "kernels/detection/nms_cuda.h"
#include "kernels/detection/roi_align_cuda.h"
#include "kernels/segmentation/segmentation_argmax_cuda.h"
#include "model/ops/cuda/cuda_dispatch.h"
#include "model/ops/cuda/cuda_ops.h"
#include "model/ops/kernel_types.h"

namespace sfmamba::ops {
namespace {

// Copies a device's tensor to a vector of the same size and waits for the copy.
template <typename T>
void CopyTo(std::vector<T>& host, const at::Tensor& x) {
  at::from_blob(host.data(), x.sizes(), at::TensorOptions(x.scalar_type()))
      .copy_(x);
}

}  // namespace

at::Tensor CudaOps::RoiAlign(const std::vector<at::Tensor>& maps,
                             const std::vector<int>& strides,
                             const at::Tensor& rois, int size,
                             float finest_scale) const {
  const int64_t channels = maps[0].size(0);
  const at::Tensor boxes = rois.contiguous();
  const at::Tensor out =
      at::empty({rois.size(0), size, size, channels}, maps[0].options());
  CudaDispatch(out, [&](auto type) {
    using T = decltype(type);
    kernels::RoiAlignCudaArgs<T> args{};
    args.num_levels = maps.size();
    for (size_t i = 0; i < maps.size(); ++i) {
      args.levels[i] = {Data<T>(maps[i]), static_cast<int>(maps[i].size(1)),
                        static_cast<int>(maps[i].size(2)),
                        1.0f / static_cast<float>(strides[i])};
    }
    args.channels = channels;
    args.finest_scale = finest_scale;
    args.num_rois = rois.size(0);
    args.rois = Floats(boxes);
    args.out_height = args.out_width = size;
    args.out = Data<T>(out);
    CheckLaunch(kernels::RoiAlignCuda(args, stream_of_(out)));
  });
  return out.permute({0, 3, 1, 2});
}

at::Tensor CudaOps::Nms(const at::Tensor& boxes, const at::Tensor& scores,
                        const at::Tensor& groups, float iou_threshold,
                        int64_t max_kept) const {
  const int64_t count = boxes.size(0);
  const auto bytes = boxes.options().dtype(at::kByte);
  const auto ints = boxes.options().dtype(at::kInt);
  if (count == 0) return at::empty({0}, boxes.options().dtype(at::kLong));
  const at::Tensor dense_boxes = boxes.contiguous();
  const at::Tensor dense_scores = scores.contiguous();
  const at::Tensor dense_groups =
      groups.defined() ? groups.contiguous() : groups;
  const at::Tensor kept = at::empty({std::min(count, max_kept)}, ints);
  const at::Tensor num_kept = at::empty({1}, ints);
  const at::Tensor scratch =
      at::empty({static_cast<int64_t>(
                    kernels::NmsCudaScratchBytes(/*num_images=*/1, count))},
                bytes);
  kernels::NmsCudaArgs args{};
  args.num_images = 1;
  args.num_boxes = count;
  args.boxes = Floats(dense_boxes);
  args.scores = Floats(dense_scores);
  if (groups.defined()) args.groups = Data<int32_t>(dense_groups);
  args.iou_threshold = iou_threshold;
  args.max_kept = max_kept;
  args.kept = Data<int32_t>(kept);
  args.num_kept = Data<int32_t>(num_kept);
  args.scratch = scratch.data_ptr();
  CheckLaunch(kernels::NmsCuda(args, stream_of_(boxes)));
  // item() waits for the GPU. This is necessary because the next tensors'
  // shapes depend on the number of boxes.
  return kept.narrow(0, 0, num_kept.item<int>()).to(at::kLong);
}

void CudaOps::SegmentationArgmax(const at::Tensor& logits, int input_height,
                                 int input_width, bool confidence,
                                 model::Segmentation* out) const {
  const at::Tensor channels_last = logits.permute({1, 2, 0}).contiguous();
  const int64_t classes = logits.size(0);
  const std::vector<int64_t> size = {out->height, out->width};
  const auto of = [&](at::ScalarType type) {
    return logits.options().dtype(type);
  };
  const at::Tensor labels = at::empty(size, of(at::kUInt16));
  const at::Tensor areas = at::zeros({classes}, of(at::kLong));
  const at::Tensor confidences =
      confidence ? at::empty(size, of(at::kByte)) : at::Tensor();
  const at::Tensor scratch = at::empty(
      {static_cast<int64_t>(kernels::SegmentationArgmaxCudaScratchBytes(
          out->height, out->width))},
      of(at::kByte));
  CudaDispatch(logits, [&](auto type) {
    using T = decltype(type);
    kernels::SegmentationArgmaxCudaArgs<T> args{};
    args.logits = Data<T>(channels_last);
    args.height = logits.size(1);
    args.width = logits.size(2);
    args.classes = classes;
    args.input_height = input_height;
    args.input_width = input_width;
    args.out_height = out->height;
    args.out_width = out->width;
    args.row_begin = 0;
    args.row_end = out->height;
    args.labels = Data<uint16_t>(labels);
    if (confidence) args.confidence = Data<uint8_t>(confidences);
    args.areas = Data<int64_t>(areas);
    args.scratch = scratch.data_ptr();
    CheckLaunch(kernels::SegmentationArgmaxCuda(args, stream_of_(logits)));
  });
  out->labels.resize(labels.numel());
  CopyTo(out->labels, labels);
  out->confidence.resize(confidence ? labels.numel() : 0);
  if (confidence) CopyTo(out->confidence, confidences);
  out->areas.resize(classes);
  CopyTo(out->areas, areas);
}

}  // namespace sfmamba::ops
