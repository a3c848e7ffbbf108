#include "model/backbones/mamba_mixer.h"

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"

namespace sfmamba::backbones {
namespace {

constexpr int kStates = 8;
// MambaVision adds dt's bias twice: in the linear layer and in the scan. Its
// weights were trained in this way. Here, the bias is doubled at load and added
// once.
constexpr double kDtBiasScale = 2;

SsmBranch::Shape BranchShape(int width, int reversed_scans) {
  return {/*channels=*/width / 2, /*rank=*/(width + 15) / 16, kStates,
          kDtBiasScale, reversed_scans};
}

}  // namespace

MambaMixer::MambaMixer(const weights::StateDict::Scope& scope, int width,
                       model::ScanMode scan, const at::Tensor& gamma,
                       const ops::Implementation& implementation)
    : half_(width / 2),
      in_proj_(
          {layers::Linear::Take(scope.Sub("in_proj"), width, width, false), {}},
          implementation),
      out_proj_(
          {layers::Linear::Take(scope.Sub("out_proj"), width, width, false),
           gamma},
          implementation),
      conv_({layers::ShortConvolution::Take(scope.Sub("conv1d_x"), {half_}),
             layers::ShortConvolution::Take(scope.Sub("conv1d_z"), {half_})},
            /*left=*/1, implementation),
      forward_(scope, "",
               // The second argument is the number of channels that are scanned
               // backward. With kParallelCat, these are half of the scanned
               // channels, rounded up.
               BranchShape(width, scan == model::ScanMode::kParallelCat
                                      ? half_ - half_ / 2
                                      : 0),
               implementation) {
  if (scan == model::ScanMode::kParallelAdd) {
    backward_.emplace(scope, "conv1d_x", layers::ShortConvolution::Shape{half_},
                      "_b", BranchShape(width, /*reversed_scans=*/0),
                      implementation);
  }
}

void MambaMixer::AddTo(ops::Residual& residual, const at::Tensor& x,
                       int64_t length) const {
  const at::Tensor xz = in_proj_.Forward(x);
  // out_proj_ reads the channels (y | z). Both halves are written to `out`
  // directly, so no concatenation is needed.
  const at::Tensor out = at::empty_like(xz);
  const at::Tensor u = xz.narrow(2, 0, half_), y = out.narrow(2, 0, half_);
  const at::Tensor convolved = at::empty(u.sizes(), u.options());
  conv_.Forward({{u, convolved},
                 {xz.narrow(2, half_, half_), out.narrow(2, half_, half_)}},
                length);
  forward_.Forward(convolved, length, y);
  if (backward_.has_value()) backward_->AddBackward(u, length, y);
  out_proj_.AddTo(residual, out);
}

}  // namespace sfmamba::backbones
