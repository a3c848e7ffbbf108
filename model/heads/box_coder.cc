#include "model/heads/box_coder.h"

#include <algorithm>
#include <cmath>

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"

namespace sfmamba::heads {
namespace {

// Exponents are clamped to +-|ln(16 / 1000)|, so exp() cannot overflow. The new
// side of a box is at most 62.5 times as long or as short as its old side.
constexpr float kMaxExponent = 4.135166556742356f;

// Returns one set of four deltas from a row of sets. `slot` is the index of the
// set.
Deltas DeltasAt(const float* row, int64_t slot) {
  const float* deltas = row + 4 * slot;
  return {deltas[0], deltas[1], deltas[2], deltas[3]};
}

// Moves and scales the side [low, high] of a box along one axis. Returns its
// new ends.
std::pair<float, float> DecodeSide(float low, float high, float shift,
                                   float exponent) {
  const float centre = (low + high) * 0.5f;
  const float size = high - low;
  const float new_centre = centre + size * shift;
  const float new_size =
      size * std::exp(std::clamp(exponent, -kMaxExponent, kMaxExponent));
  return {new_centre - new_size * 0.5f, new_centre + new_size * 0.5f};
}

}  // namespace

model::Box DecodeBox(const model::Box& source, const Deltas& deltas,
                     const Deltas& stds) {
  const auto [x1, x2] = DecodeSide(source.x1, source.x2, deltas[0] * stds[0],
                                   deltas[2] * stds[2]);
  const auto [y1, y2] = DecodeSide(source.y1, source.y2, deltas[1] * stds[1],
                                   deltas[3] * stds[3]);
  return {x1, y1, x2, y2};
}

model::Box ClipBox(const model::Box& box, int height, int width) {
  const float right = width, bottom = height;
  return {std::clamp(box.x1, 0.0f, right), std::clamp(box.y1, 0.0f, bottom),
          std::clamp(box.x2, 0.0f, right), std::clamp(box.y2, 0.0f, bottom)};
}

model::Box BoxAt(const at::Tensor& boxes, int64_t row) {
  const float* box = boxes.const_data_ptr<float>() + row * boxes.stride(0);
  return {box[0], box[1], box[2], box[3]};
}

void SetBox(const at::Tensor& boxes, int64_t row, const model::Box& box) {
  float* out = boxes.data_ptr<float>() + row * boxes.stride(0);
  out[0] = box.x1;
  out[1] = box.y1;
  out[2] = box.x2;
  out[3] = box.y2;
}

at::Tensor DecodeBoxes(const at::Tensor& boxes, const at::Tensor& deltas,
                       const Deltas& stds, int height, int width) {
  const int64_t slots = deltas.size(1) / 4;
  const at::Tensor decoded = at::empty(deltas.sizes(), boxes.options());
  const at::Tensor rows = decoded.view({-1, 4});
  const float* values = deltas.const_data_ptr<float>();
  for (int64_t i = 0; i < boxes.size(0); ++i) {
    const model::Box source = BoxAt(boxes, i);
    const float* row = values + i * deltas.stride(0);
    for (int64_t k = 0; k < slots; ++k) {
      const model::Box box = DecodeBox(source, DeltasAt(row, k), stds);
      SetBox(rows, i * slots + k, ClipBox(box, height, width));
    }
  }
  return decoded;
}

at::Tensor RefineBoxes(const at::Tensor& boxes, const at::Tensor& logits,
                       const at::Tensor& deltas, const Deltas& stds, int height,
                       int width) {
  const at::Tensor refined = at::empty_like(boxes);
  const int64_t classes = logits.size(1) - 1;
  const bool agnostic = deltas.size(1) == 4;
  for (int64_t i = 0; i < boxes.size(0); ++i) {
    const float* scores = logits.const_data_ptr<float>() + i * logits.stride(0);
    // The last column is the background. It has no deltas, so it is not
    // considered.
    const int64_t label = std::max_element(scores, scores + classes) - scores;
    const float* row = deltas.const_data_ptr<float>() + i * deltas.stride(0);
    const model::Box box =
        DecodeBox(BoxAt(boxes, i), DeltasAt(row, agnostic ? 0 : label), stds);
    SetBox(refined, i, ClipBox(box, height, width));
  }
  return refined;
}

}  // namespace sfmamba::heads
