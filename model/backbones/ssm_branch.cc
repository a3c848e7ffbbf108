#include "model/backbones/ssm_branch.h"

#include "ATen/TensorOperators.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/flip.h"
#include "absl/strings/str_cat.h"
#include "model/layers/linear.h"

namespace sfmamba::backbones {
namespace {

// Returns the parameters for channels [begin, begin + count).
ops::ScanParameters Slice(const ops::ScanParameters& scan, int begin,
                          int count) {
  return {scan.A.narrow(1, begin, count).contiguous(),
          scan.D.narrow(0, begin, count), scan.bias.narrow(0, begin, count)};
}

at::Tensor EmptyLike(const at::Tensor& x) {
  // This is contiguous even if x is not.
  return at::empty(x.sizes(), x.options());
}

}  // namespace

at::Tensor Reversed(const at::Tensor& x, int64_t length) {
  return x.reshape({-1, length, x.size(2)})
      .flip({1})
      .contiguous()
      .view(x.sizes());
}

SsmBranch::SsmBranch(const weights::StateDict::Scope& scope,
                     absl::string_view suffix, const Shape& shape,
                     const ops::Implementation& implementation)
    : shape_(shape) {
  const int channels = shape.channels;
  const ops::Weights x_proj =
      layers::Linear::Take(scope.Sub(absl::StrCat("x_proj", suffix)), channels,
                           shape.rank + 2 * shape.states, /*bias=*/false);
  const ops::Weights dt_proj =
      layers::Linear::Take(scope.Sub(absl::StrCat("dt_proj", suffix)),
                           shape.rank, channels, /*bias=*/false);
  projection_ =
      implementation.MakeScanProjection({x_proj, dt_proj, shape.states});
  const ops::ScanParameters scan = {
      ops::DecayRates(scope.Take(absl::StrCat("A", suffix, "_log"),
                                 {channels, shape.states})),
      scope.Take(absl::StrCat("D", suffix), {channels}),
      scope.Take(absl::StrCat("dt_proj", suffix, ".bias"), {channels}) *
          shape.dt_bias_scale};
  const int forward = channels - shape.reversed_scans;
  scan_ = implementation.MakeSelectiveScan(Slice(scan, 0, forward));
  if (shape.reversed_scans > 0) {
    reversed_scan_ = implementation.MakeSelectiveScan(
        Slice(scan, forward, shape.reversed_scans));
  }
}

void SsmBranch::Forward(const at::Tensor& u, int64_t length,
                        const at::Tensor& y) const {
  const auto [same, dt, B, C] = projection_->Forward(u);
  const int reversed = shape_.reversed_scans;
  const int forward = u.size(2) - reversed;
  scan_->Forward({u.narrow(2, 0, forward), dt.narrow(2, 0, forward), B, C},
                 length, y.narrow(2, 0, forward));
  if (reversed == 0) return;
  // The kernel scans only forward, so its inputs are reversed. B and C have a
  // row for each token and are reversed, too.
  const ops::ScanInputs inputs = {
      Reversed(u.narrow(2, forward, reversed), length),
      Reversed(dt.narrow(2, forward, reversed), length), Reversed(B, length),
      Reversed(C, length)};
  const at::Tensor backward = EmptyLike(inputs.u);
  reversed_scan_->Forward(inputs, length, backward);
  y.narrow(2, forward, reversed).copy_(Reversed(backward, length));
}

ConvolvedSsmBranch::ConvolvedSsmBranch(
    const weights::StateDict::Scope& scope, absl::string_view conv,
    const layers::ShortConvolution::Shape& conv_shape, absl::string_view suffix,
    const SsmBranch::Shape& shape, const ops::Implementation& implementation)
    : conv_({layers::ShortConvolution::Take(
                scope.Sub(absl::StrCat(conv, suffix)), conv_shape)},
            conv_shape.left, implementation),
      branch_(scope, suffix, shape, implementation) {}

void ConvolvedSsmBranch::Forward(const at::Tensor& x, int64_t length,
                                 const at::Tensor& y) const {
  const at::Tensor u = EmptyLike(x);
  conv_.Forward({{x, u}}, length);
  branch_.Forward(u, length, y);
}

void ConvolvedSsmBranch::AddBackward(const at::Tensor& x, int64_t length,
                                     const at::Tensor& y) const {
  // x is reversed before the convolution and not after it. A causal
  // convolution, such as Vim's, must look back in the direction of the scan.
  const at::Tensor backward = EmptyLike(x);
  Forward(Reversed(x, length), length, backward);
  y.add_(Reversed(backward, length));
}

}  // namespace sfmamba::backbones
