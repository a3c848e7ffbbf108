#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/constant_pad_nd.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/flip.h"
#include "ATen/ops/silu.h"
#include "ATen/ops/softplus.h"
#include "ATen/ops/stack.h"
#include "ATen/ops/where.h"
#include "ATen/ops/zeros_like.h"
#include "model/ops/composed/two_step_projection.h"
#include "model/ops/reference/reference_implementation.h"

namespace sfmamba::ops {
namespace {

// Returns x shifted forward by `offset` tokens, or backward if it is negative.
// Values from beyond a sequence are zeros.
at::Tensor Shifted(const at::Tensor& x, int offset, int64_t length) {
  const int64_t by = std::clamp<int64_t>(offset, -x.size(1), x.size(1));
  const at::Tensor moved = at::constant_pad_nd(x, {0, 0, by, -by}, 0);
  const at::Tensor origin =
      at::arange(x.size(1), at::kLong).remainder(length).view({1, -1, 1}) -
      offset;
  return at::where((origin >= 0).logical_and(origin < length), moved,
                   at::Scalar(0.0));
}

// Convolves tap by tap. Taps beyond the sequence are skipped.
class ReferenceShortConvolution : public ShortConvolutionOp {
 public:
  explicit ReferenceShortConvolution(ShortConvolutionParameters parameters)
      : parameters_(std::move(parameters)) {}

  void Forward(absl::Span<const Step> steps, int64_t length) const override {
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i].y.copy_(
          at::silu(Convolve(parameters_.parts[i], steps[i].x, length)));
    }
  }

 private:
  at::Tensor Convolve(const ShortConvolutionParameters::Part& part,
                      const at::Tensor& x, int64_t length) const {
    at::Tensor y =
        part.bias.defined() ? part.bias.expand(x.sizes()) : at::zeros_like(x);
    for (int tap = 0; tap < part.weight.size(0); ++tap) {
      y = y + Shifted(x, parameters_.left - tap, length) * part.weight[tap];
    }
    return y;
  }

  const ShortConvolutionParameters parameters_;
};

// Runs the recurrence token by token, as SF-Mamba (arXiv 2603.16423, 3.3)
// defines it on folded batches. At the beginning of a sequence, the state is
// replaced and not multiplied by 0, because 0 times a NaN is a NaN.
class ReferenceScan : public SelectiveScanOp {
 public:
  explicit ReferenceScan(const ScanParameters& parameters)
      : parameters_(parameters) {}

  void Forward(const ScanInputs& inputs, int64_t length,
               const at::Tensor& y) const override {
    const auto& [u, dt, B, C] = inputs;
    const auto& [A, D, bias] = parameters_;
    const at::Tensor delta = at::softplus(dt + bias).unsqueeze(2);
    const at::Tensor input = delta * u.unsqueeze(2);  // [rows, tokens, 1, D]
    std::vector<at::Tensor> ys;
    at::Tensor h;  // [rows, states, D]
    for (int64_t t = 0; t < u.size(1); ++t) {
      const at::Tensor added = input.select(1, t) * B.select(1, t).unsqueeze(2);
      h = t % length == 0 ? added : (delta.select(1, t) * A).exp() * h + added;
      ys.push_back((h * C.select(1, t).unsqueeze(2)).sum(1) +
                   D * u.select(1, t));
    }
    y.copy_(at::stack(ys, 1));
  }

 private:
  const ScanParameters parameters_;
};

// Returns the pixels of map x [N, H, W, C] as [N, H * W, C], in the order in
// which `direction` visits them.
at::Tensor InOrder(const at::Tensor& x, int direction) {
  const at::Tensor pixels =
      (direction % 2 == 0 ? x : x.transpose(1, 2)).flatten(1, 2);
  return direction < 2 ? pixels : at::flip(pixels, 1);
}

// The inverse of InOrder(). Takes the pixels in the order of `direction` and
// returns the map [N, height, W, C].
at::Tensor InPlace(const at::Tensor& pixels, int direction, int64_t height) {
  const at::Tensor forward = direction < 2 ? pixels : at::flip(pixels, 1);
  const int64_t width = pixels.size(1) / height;
  return direction % 2 == 0
             ? forward.unflatten(1, {height, width})
             : forward.unflatten(1, {width, height}).transpose(1, 2);
}

// Scans a copy of the map for each direction.
class ReferenceCrossScan : public CrossScanOp {
 public:
  ReferenceCrossScan(const Implementation& implementation,
                     const CrossScanParameters& parameters)
      : norm_(implementation.MakeLayerNorm(parameters.norm)) {
    for (int i = 0; i < 4; ++i) {
      directions_[i].projection =
          implementation.MakeScanProjection({{parameters.x_proj[i], {}},
                                             {parameters.dt_proj[i], {}},
                                             /*states=*/1});
      directions_[i].scan = implementation.MakeSelectiveScan(
          {parameters.A.narrow(0, i, 1), parameters.D[i], parameters.bias[i]});
    }
  }

  at::Tensor Forward(const at::Tensor& u) const override {
    at::Tensor sum = at::zeros_like(u);
    for (int i = 0; i < 4; ++i) {
      const ScanInputs inputs =
          directions_[i].projection->Forward(InOrder(u, i).contiguous());
      const at::Tensor y = at::empty_like(inputs.u);
      directions_[i].scan->Forward(inputs, /*length=*/y.size(1), y);
      sum += InPlace(y, i, u.size(1));
    }
    Residual pixels(sum.flatten(1, 2));
    return norm_->Forward(pixels, /*length=*/1, /*swap=*/false).view(u.sizes());
  }

 private:
  struct Direction {
    std::unique_ptr<const ScanProjectionOp> projection;
    std::unique_ptr<const SelectiveScanOp> scan;
  };

  std::array<Direction, 4> directions_;
  std::unique_ptr<const LayerNormOp> norm_;
};

}  // namespace

std::unique_ptr<ShortConvolutionOp>
ReferenceImplementation::MakeShortConvolution(
    const ShortConvolutionParameters& parameters) const {
  return std::make_unique<ReferenceShortConvolution>(parameters);
}

std::unique_ptr<ScanProjectionOp> ReferenceImplementation::MakeScanProjection(
    const ScanProjectionParameters& parameters) const {
  return std::make_unique<TwoStepProjection>(*this, parameters);
}

std::unique_ptr<SelectiveScanOp> ReferenceImplementation::MakeSelectiveScan(
    const ScanParameters& parameters) const {
  return std::make_unique<ReferenceScan>(parameters);
}

std::unique_ptr<CrossScanOp> ReferenceImplementation::MakeCrossScan(
    const CrossScanParameters& parameters) const {
  return std::make_unique<ReferenceCrossScan>(*this, parameters);
}

}  // namespace sfmamba::ops
