#include <memory>
#include <utility>

#include "ATen/ops/bmm.h"
#include "ATen/ops/empty.h"
#include "model/ops/composed/two_step_projection.h"
#include "model/ops/cuda/cuda_implementation.h"
#include "model/ops/rows.h"

namespace sfmamba::ops {
namespace {

// Runs both of a mixer's convolutions in one launch.
class CudaShortConvolution : public ShortConvolutionOp {
 public:
  CudaShortConvolution(const DeviceOps& device,
                       ShortConvolutionParameters parameters)
      : device_(device), parameters_(std::move(parameters)) {}

  void Forward(absl::Span<const Step> steps, int64_t length) const override {
    std::vector<ShortConv> convs;
    for (size_t i = 0; i < steps.size(); ++i) {
      const ShortConvolutionParameters::Part& part = parameters_.parts[i];
      convs.push_back(
          {ToRows(steps[i].x), part.weight, part.bias, ToRows(steps[i].y)});
    }
    device_.DepthwiseConvSilu(convs, parameters_.left, length);
  }

 private:
  const DeviceOps& device_;
  const ShortConvolutionParameters parameters_;
};

// Combines both projections into one matrix product.
class ComposedProjection : public ScanProjectionOp {
 public:
  ComposedProjection(const Implementation& implementation,
                     const ScanProjectionParameters& parameters)
      : states_(parameters.states),
        projection_(implementation.MakeLinear(
            {ComposeProjections(parameters.x_proj, parameters.dt_proj), {}})) {}

  // Returns whether both projections should be combined into one matrix
  // product. This saves a launch, but each token then needs channels^2
  // multiplications instead of 2 * rank * channels. B and C need rest *
  // channels multiplications in both cases. The combination is worth it if the
  // total number of multiplications grows by a factor of at most four.
  static bool IsWorthIt(const ScanProjectionParameters& parameters) {
    const int64_t rest = 2 * parameters.states;
    return parameters.channels() + rest <= 4 * (2 * parameters.rank() + rest);
  }

  ScanInputs Forward(const at::Tensor& u) const override {
    return TwoStepProjection::Split(u, projection_->Forward(u), states_);
  }

 private:
  int64_t states_;
  std::unique_ptr<const LinearOp> projection_;  // Computes (dt | B | C).
};

class CudaScan : public SelectiveScanOp {
 public:
  CudaScan(const DeviceOps& device, const ScanParameters& parameters,
           const tuning::ScanPlanChooser* chooser)
      : device_(device),
        scan_{parameters.A, parameters.D, parameters.bias, chooser} {}

  void Forward(const ScanInputs& inputs, int64_t length,
               const at::Tensor& y) const override {
    TORCH_CHECK(inputs.B.stride(1) == inputs.C.stride(1),
                "B and C must have one row stride");
    device_.SelectiveScan(scan_, ToRows(inputs.u), ToRows(inputs.dt),
                          ToRows(inputs.B), ToRows(inputs.C), length,
                          /*rows=*/inputs.u.size(0), ToRows(y));
  }

 private:
  const DeviceOps& device_;
  const Scan scan_;
};

// Computes the projections of all four directions together. One kernel computes
// all four scans.
class CudaCrossScan : public CrossScanOp {
 public:
  // `type` is the type of the inputs of matrix products.
  CudaCrossScan(const Implementation& implementation, const DeviceOps& device,
                const CrossScanParameters& parameters, at::ScalarType type,
                const tuning::ScanPlanChooser* chooser)
      : device_(device),
        rank_(parameters.rank()),
        x_proj_(
            implementation.MakeLinear({{parameters.x_proj.flatten(0, 1), {}}})),
        dt_proj_(parameters.dt_proj.transpose(1, 2).to(type)),
        scan_{parameters.A, parameters.D, parameters.bias, chooser},
        norm_(implementation.MakeLayerNorm(parameters.norm)) {}

  at::Tensor Forward(const at::Tensor& u) const override {
    // [pixels, 4, rank + 2]
    const at::Tensor projected =
        AsRows(x_proj_->Forward(u)).unflatten(1, {4, rank_ + 2});
    const at::Tensor dt =
        at::bmm(projected.narrow(2, 0, rank_).transpose(0, 1), dt_proj_);
    const at::Tensor y = at::empty(dt.sizes(), dt.options().dtype(at::kFloat));
    device_.CrossScan(scan_, u, dt, projected.select(2, rank_),
                      projected.select(2, rank_ + 1), y);
    Residual sum(y.sum(0, /*keepdim=*/true));
    return norm_->Forward(sum, /*length=*/1, /*swap=*/false).view(u.sizes());
  }

 private:
  const DeviceOps& device_;
  const int64_t rank_;
  const std::unique_ptr<const LinearOp> x_proj_;
  const at::Tensor dt_proj_;  // [4, rank, channels]
  const Scan scan_;
  const std::unique_ptr<const LayerNormOp> norm_;
};

}  // namespace

std::unique_ptr<ShortConvolutionOp> CudaImplementation::MakeShortConvolution(
    const ShortConvolutionParameters& parameters) const {
  return std::make_unique<CudaShortConvolution>(device_, parameters);
}

std::unique_ptr<ScanProjectionOp> CudaImplementation::MakeScanProjection(
    const ScanProjectionParameters& parameters) const {
  if (ComposedProjection::IsWorthIt(parameters)) {
    return std::make_unique<ComposedProjection>(*this, parameters);
  }
  return std::make_unique<TwoStepProjection>(*this, parameters);
}

std::unique_ptr<SelectiveScanOp> CudaImplementation::MakeSelectiveScan(
    const ScanParameters& parameters) const {
  return std::make_unique<CudaScan>(device_, parameters, options_.chooser);
}

std::unique_ptr<CrossScanOp> CudaImplementation::MakeCrossScan(
    const CrossScanParameters& parameters) const {
  return std::make_unique<CudaCrossScan>(*this, device_, parameters,
                                         TypeOf(/*is_output=*/false),
                                         options_.chooser);
}

}  // namespace sfmamba::ops
