#ifndef SFMAMBA_MODEL_HEADS_BOX_CODER_H_
#define SFMAMBA_MODEL_HEADS_BOX_CODER_H_

#include <array>

#include "ATen/core/Tensor.h"
#include "model/result.h"

namespace sfmamba::heads {

// How a detector says where a box is: by four deltas from a box it knows, with
// c and s that box's centre and size,
//   c' = c + s * d[0,1] * stds[0,1],  s' = s * exp(d[2,3] * stds[2,3]),
// the exponent clamped to +-|ln(16 / 1000)|.
// Source: Fast R-CNN (arXiv 1504.08083), 2.3; docs/heads.md, "Box coder".
using Deltas = std::array<float, 4>;

model::Box DecodeBox(const model::Box& source, const Deltas& deltas,
                     const Deltas& stds);

// The part of `box` inside an image of height x width: coordinates of 0 to the
// size.
model::Box ClipBox(const model::Box& box, int height, int width);

// Row `row` of boxes [n, 4], fp32.
model::Box BoxAt(const at::Tensor& boxes, int64_t row);
void SetBox(const at::Tensor& boxes, int64_t row, const model::Box& box);

// Boxes [n, 4] moved by deltas [n, 4 K], K boxes a row, and clipped: [n, 4 K].
at::Tensor DecodeBoxes(const at::Tensor& boxes, const at::Tensor& deltas,
                       const Deltas& stds, int height, int width);

// Boxes [n, 4] moved by the deltas of the class with the largest of logits
// [n, classes + 1], the background's, the last, apart; clipped. deltas [n, 4
// classes], or [n, 4] for all classes alike.
at::Tensor RefineBoxes(const at::Tensor& boxes, const at::Tensor& logits,
                       const at::Tensor& deltas, const Deltas& stds, int height,
                       int width);

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_BOX_CODER_H_
