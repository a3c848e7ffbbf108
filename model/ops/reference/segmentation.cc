#include <algorithm>
#include <limits>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/argmax.h"
#include "ATen/ops/bincount.h"
#include "ATen/ops/isnan.h"
#include "ATen/ops/nan_to_num.h"
#include "ATen/ops/softmax.h"
#include "ATen/ops/upsample_bilinear2d.h"
#include "ATen/ops/where.h"
#include "model/ops/reference/reference_implementation.h"

namespace sfmamba::ops {
namespace {

// Resizes maps [C, H, W] bilinearly.
at::Tensor Resized(const at::Tensor& maps, int64_t height, int64_t width) {
  return at::upsample_bilinear2d(maps.unsqueeze(0), {height, width},
                                 /*align_corners=*/false)[0];
}

// Copies int64 values to a vector of a type that can hold them.
template <typename T>
void CopyTo(const at::Tensor& x, std::vector<T>* values) {
  const at::Tensor contiguous = x.contiguous();
  const int64_t* data = contiguous.const_data_ptr<int64_t>();
  values->assign(data, data + x.numel());
}

}  // namespace

void ReferenceImplementation::SegmentationArgmax(
    const at::Tensor& logits, int input_height, int input_width,
    bool confidence, model::Segmentation* out) const {
  const at::Tensor resized = Resized(Resized(logits, input_height, input_width),
                                     out->height, out->width);
  // A NaN never wins, whereas argmax() would choose it.
  const double lowest = -std::numeric_limits<double>::infinity();
  const at::Tensor labels =
      at::argmax(at::where(at::isnan(resized), at::Scalar(lowest), resized), 0);
  CopyTo(labels, &out->labels);
  CopyTo(at::bincount(labels.flatten(), {}, logits.size(0)), &out->areas);
  out->confidence.clear();
  if (!confidence) return;
  const at::Tensor probabilities = at::softmax(resized, 0);
  const at::Tensor best =
      probabilities.gather(0, labels.unsqueeze(0)).squeeze(0);
  CopyTo((at::nan_to_num(best, 0.0) * 255).round().to(at::kLong),
         &out->confidence);
}

}  // namespace sfmamba::ops
