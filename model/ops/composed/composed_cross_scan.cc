#include "model/ops/composed/composed_cross_scan.h"

#include <optional>

#include "ATen/TensorOperators.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/constant_pad_nd.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/index.h"

namespace sfmamba::ops {
namespace {

// Returns pixels [N, L, C] in the opposite order. flip() has no form for
// tensors without data, by which launches are listed.
at::Tensor Backward(const at::Tensor& pixels) {
  const at::Tensor order =
      at::arange(pixels.size(1) - 1, -1, -1, pixels.options().dtype(at::kLong));
  return at::index(pixels, {std::nullopt, order});
}

// Returns the pixels of x [N, H, W, C] in a direction's order, [N, H * W, C].
at::Tensor InOrder(const at::Tensor& x, int direction) {
  const at::Tensor pixels =
      (direction % 2 == 0 ? x : x.transpose(1, 2)).flatten(1, 2);
  return direction < 2 ? pixels : Backward(pixels);
}

// The inverse of InOrder(), for a map of `height` rows.
at::Tensor InPlace(const at::Tensor& pixels, int direction, int64_t height) {
  const at::Tensor forward = direction < 2 ? pixels : Backward(pixels);
  const int64_t width = pixels.size(1) / height;
  return direction % 2 == 0
             ? forward.unflatten(1, {height, width})
             : forward.unflatten(1, {width, height}).transpose(1, 2);
}

}  // namespace

CrossScanParameters WithStates(const CrossScanParameters& parameters,
                               int64_t states) {
  const int64_t more = states - parameters.states();
  if (more == 0) return parameters;
  CrossScanParameters padded = parameters;
  const auto rows = [&](int64_t first, int64_t count) {
    return parameters.x_proj.narrow(1, first, count);
  };
  const auto pad = [&](const at::Tensor& x, double value) {
    return at::constant_pad_nd(x, {0, 0, 0, more}, value);
  };
  const int64_t rank = parameters.rank(), own = parameters.states();
  // With B = 0 a state stays 0.
  padded.x_proj = at::cat(
      {rows(0, rank), pad(rows(rank, own), 0), pad(rows(rank + own, own), 0)},
      1);
  padded.A = pad(parameters.A, -1);
  return padded;
}

ComposedCrossScan::ComposedCrossScan(const Implementation& implementation,
                                     const CrossScanParameters& parameters)
    : norm_(implementation.MakeLayerNorm(parameters.norm)) {
  for (int i = 0; i < 4; ++i) {
    directions_[i].projection = implementation.MakeScanProjection(
        {{parameters.x_proj[i], {}},
         {parameters.dt_proj[i], {}},
         static_cast<int>(parameters.states())});
    directions_[i].scan = implementation.MakeSelectiveScan(
        {parameters.A[i], parameters.D[i], parameters.bias[i]});
  }
}

at::Tensor ComposedCrossScan::Forward(const at::Tensor& u) const {
  at::Tensor sum;
  for (int i = 0; i < 4; ++i) {
    const ScanInputs inputs =
        directions_[i].projection->Forward(InOrder(u, i).contiguous());
    const at::Tensor y = at::empty_like(inputs.u);
    directions_[i].scan->Forward(inputs, /*length=*/y.size(1), y);
    const at::Tensor map = InPlace(y.to(at::kFloat), i, u.size(1));
    sum = i == 0 ? map : sum + map;
  }
  Residual pixels(sum.flatten(1, 2));
  return norm_->Forward(pixels, /*length=*/1, /*swap=*/false).view(u.sizes());
}

}  // namespace sfmamba::ops
