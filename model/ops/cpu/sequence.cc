#include <utility>
#include <vector>

#include "model/ops/composed/two_step_projection.h"
#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/rows.h"

namespace sfmamba::ops {
namespace {

class CpuShortConvolution : public ShortConvolutionOp {
 public:
  explicit CpuShortConvolution(ShortConvolutionParameters parameters)
      : parameters_(std::move(parameters)) {}

  void Forward(absl::Span<const Step> steps, int64_t length) const override {
    std::vector<SequenceConvolution> convolutions;
    for (size_t i = 0; i < steps.size(); ++i) {
      const ShortConvolutionParameters::Part& part = parameters_.parts[i];
      convolutions.push_back(
          {ToRows(steps[i].x), part.weight, part.bias, ToRows(steps[i].y)});
    }
    DepthwiseConvSilu(convolutions, parameters_.left, length);
  }

 private:
  const ShortConvolutionParameters parameters_;
};

// A row of the inputs contains one or several sequences. The number of
// sequences in a row does not change the result, because each sequence is
// scanned by itself, token by token.
class CpuScan : public SelectiveScanOp {
 public:
  explicit CpuScan(const ScanParameters& parameters)
      : parameters_(parameters) {}

  void Forward(const ScanInputs& inputs, int64_t length,
               const at::Tensor& y) const override {
    SelectiveScan(parameters_, ToRows(inputs.u), ToRows(inputs.dt),
                  ToRows(inputs.B), ToRows(inputs.C), length, ToRows(y));
  }

 private:
  const ScanParameters parameters_;
};

}  // namespace

std::unique_ptr<ShortConvolutionOp> CpuImplementation::MakeShortConvolution(
    const ShortConvolutionParameters& parameters) const {
  return std::make_unique<CpuShortConvolution>(parameters);
}

std::unique_ptr<ScanProjectionOp> CpuImplementation::MakeScanProjection(
    const ScanProjectionParameters& parameters) const {
  // int8 is no faster for such small products. Therefore, a CpuImplementation
  // for fp32 makes their operators. It may be a temporary object, because the
  // operators keep no reference to it.
  if (int8_) {
    return std::make_unique<TwoStepProjection>(CpuImplementation(), parameters);
  }
  return std::make_unique<TwoStepProjection>(*this, parameters);
}

std::unique_ptr<SelectiveScanOp> CpuImplementation::MakeSelectiveScan(
    const ScanParameters& parameters) const {
  return std::make_unique<CpuScan>(parameters);
}

}  // namespace sfmamba::ops
