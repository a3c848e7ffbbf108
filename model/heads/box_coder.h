#ifndef SFMAMBA_MODEL_HEADS_BOX_CODER_H_
#define SFMAMBA_MODEL_HEADS_BOX_CODER_H_

#include <array>

#include "ATen/core/Tensor.h"
#include "model/result.h"

namespace sfmamba::heads {

// A detector encodes a box as four deltas d relative to a known box. If the
// known box has centre c and size s, the encoded box has centre c' and size s':
//   c' = c + s * d[0,1] * stds[0,1],  s' = s * exp(d[2,3] * stds[2,3])
// The exponent is clamped to +-|ln(16 / 1000)|. Source: Fast R-CNN (arXiv
// 1504.08083), 2.3; docs/heads.md, "Box coder".
using Deltas = std::array<float, 4>;

model::Box DecodeBox(const model::Box& source, const Deltas& deltas,
                     const Deltas& stds);

// Returns `box` with its coordinates clamped to an image of height x width.
model::Box ClipBox(const model::Box& box, int height, int width);

// Read and write row `row` of boxes [n, 4], fp32.
model::Box BoxAt(const at::Tensor& boxes, int64_t row);
void SetBox(const at::Tensor& boxes, int64_t row, const model::Box& box);

// Decodes boxes [n, 4] with deltas [n, 4 K], which contain K sets of four
// deltas for each box. Applies each set to its box and clips the result to the
// image. Returns the results as [n, 4 K].
at::Tensor DecodeBoxes(const at::Tensor& boxes, const at::Tensor& deltas,
                       const Deltas& stds, int height, int width);

// Applies deltas to boxes [n, 4] and clips the results to the image. Uses the
// deltas of a box's best class. This is the class with the largest logit in
// logits [n, classes + 1], except the background, which is last. deltas is [n,
// 4 classes], or [n, 4] if all classes share the deltas.
at::Tensor RefineBoxes(const at::Tensor& boxes, const at::Tensor& logits,
                       const at::Tensor& deltas, const Deltas& stds, int height,
                       int width);

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_BOX_CODER_H_
