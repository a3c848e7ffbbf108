#include <algorithm>
#include <utility>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/constant_pad_nd.h"
#include "ATen/ops/silu.h"
#include "ATen/ops/softplus.h"
#include "ATen/ops/stack.h"
#include "ATen/ops/where.h"
#include "ATen/ops/zeros_like.h"
#include "model/ops/composed/composed_cross_scan.h"
#include "model/ops/composed/two_step_projection.h"
#include "model/ops/reference/reference_implementation.h"

namespace sfmamba::ops {
namespace {

// Returns x shifted forward by `offset` tokens (backward if negative), with
// zeros for values from beyond the sequence.
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
// defines it on folded batches. Where a sequence begins, the state is replaced,
// not multiplied by 0.
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
  return std::make_unique<ComposedCrossScan>(*this, parameters);
}

}  // namespace sfmamba::ops
