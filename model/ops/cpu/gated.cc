#include <algorithm>

#include "ATen/ops/empty.h"
#include "ATen/record_function.h"
#include "kernels/linear/gated_convolution.h"
#include "kernels/linear/gelu.h"
#include "kernels/linear/silu.h"
#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/kernel_types.h"
#include "model/ops/parallel.h"

namespace sfmamba::ops {
namespace {

// The smallest number of multiplications in a part of a convolution, and of
// values in a part of an activation. Both take about 10 us.
constexpr int64_t kGrainProducts = 1 << 17;
constexpr int64_t kGrainValues = 16384;

class CpuGatedConvolution : public GatedConvolutionOp {
 public:
  explicit CpuGatedConvolution(const GatedConvolutionParameters& parameters)
      : gate_(parameters.gate == model::Nonlinearity::kSilu
                  ? kernels::GateActivation::kSilu
                  : kernels::GateActivation::kGeluErf),
        weight_(parameters.weights.weight.squeeze(1)
                    .permute({1, 2, 0})
                    .contiguous()),
        bias_(parameters.weights.bias) {}

  at::Tensor Forward(const at::Tensor& x) const override {
    RECORD_FUNCTION("sfmamba::gated_convolution",
                    c10::ArrayRef<const c10::IValue>{});
    const at::Tensor y = at::empty(
        {x.size(0), x.size(1), x.size(2), x.size(3) / 2}, x.options());
    Dispatch(x, [&](auto type) {
      using T = decltype(type);
      kernels::GatedConvolutionArgs<T> args{};
      args.count = x.size(0);
      args.height = x.size(1);
      args.width = x.size(2);
      args.hidden = y.size(3);
      args.conv = weight_.size(2);
      args.activation = gate_;
      args.x = Data<T>(x);
      args.weight = Floats(weight_);
      args.bias = Floats(bias_);
      args.y = Data<T>(y);
      const int64_t products = x.size(2) * weight_.numel();
      ParallelFor(x.size(0) * x.size(1),
                  std::max<int64_t>(1, kGrainProducts / products),
                  [&](int64_t begin, int64_t end) {
                    kernels::GatedConvolutionCpu(args, begin, end);
                  });
    });
    return y;
  }

 private:
  kernels::GateActivation gate_;
  at::Tensor weight_;  // [7, 7, conv]
  at::Tensor bias_;    // [conv]
};

}  // namespace

std::unique_ptr<GatedConvolutionOp> CpuImplementation::MakeGatedConvolution(
    const GatedConvolutionParameters& parameters) const {
  return std::make_unique<CpuGatedConvolution>(parameters);
}

void CpuImplementation::Activate(at::Tensor& x,
                                 model::Nonlinearity activation) const {
  // The activation handles all values in the order of memory, so the order of
  // the axes does not matter.
  TORCH_CHECK(x.is_non_overlapping_and_dense(), "expected a dense tensor");
  Dispatch(x, [&](auto type) {
    using T = decltype(type);
    ParallelFor(x.numel(), kGrainValues, [&](int64_t begin, int64_t end) {
      T* values = Data<T>(x) + begin;
      const int64_t count = end - begin;
      if (activation == model::Nonlinearity::kSilu) {
        kernels::SiluCpu<T>(values, count, values);
      } else {
        kernels::GeluErfCpu<T>({1, count, values, count, values, count});
      }
    });
  });
}

}  // namespace sfmamba::ops
