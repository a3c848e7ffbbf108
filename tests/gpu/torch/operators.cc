// Makes this project's scan and short convolution available as PyTorch
// operators:
//   torch.ops.load_library('sfmamba_operators.so'); torch.ops.sfmamba_gpu.*
// ladder.py measures a PyTorch model that calls these operators instead of
// mamba-ssm's kernels.

#include <cstdint>
#include <string>
#include <tuple>

#include "ATen/core/Tensor.h"
#include "ATen/cuda/CUDAContextLight.h"
#include "ATen/ops/empty.h"
#include "c10/cuda/CUDAGuard.h"
#include "c10/cuda/CUDAStream.h"
#include "kernels/scan/selective_scan_cuda.h"
#include "kernels/sequence/depthwise_conv1d_cuda.h"
#include "model/ops/cuda/cuda_dispatch.h"
#include "torch/library.h"

namespace sfmamba {
namespace {

constexpr int64_t kTaps = 3;

// Throws unless x is [sequences, length, width] on a GPU and the distance from
// each row of `width` values to the next is the same.
void CheckRows(const at::Tensor& x, const char* name, int64_t sequences,
               int64_t length, int64_t width) {
  TORCH_CHECK(x.is_cuda() && x.dim() == 3 && x.size(0) == sequences &&
                  x.size(1) == length && x.size(2) == width &&
                  x.stride(2) == 1 && x.stride(0) == length * x.stride(1),
              name, ": expected even rows [", sequences, ", ", length, ", ",
              width, "] on a GPU, got ", x.sizes(), " with strides ",
              x.strides());
}

// Returns the values of a parameter. Throws unless the parameter is fp32,
// contiguous and on a GPU, with `values` values.
const float* Parameter(const at::Tensor& x, const char* name, int64_t values) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.numel() == values &&
                  x.scalar_type() == at::kFloat,
              name, ": expected ", values, " dense fp32 values on a GPU, got ",
              x.sizes(), " of ", x.scalar_type());
  return x.const_data_ptr<float>();
}

template <typename T>
const T* Values(const at::Tensor& x) {
  return static_cast<const T*>(x.const_data_ptr());
}

kernels::PackedSequences SequencesOf(const at::Tensor& x) {
  return {static_cast<int>(x.size(0)), static_cast<int>(x.size(1))};
}

// Writes the scan of u, dt [S,L,D] and B, C [S,L,n] to y [S,L,D]. A is [n,D]
// and negative. D and bias are [D]. A, D and bias are fp32. The sequences are
// folded into `rows` rows (the paper's B1). 0 gives each sequence its own row.
void SelectiveScan(const at::Tensor& u, const at::Tensor& dt,
                   const at::Tensor& A, const at::Tensor& B,
                   const at::Tensor& C, const at::Tensor& D,
                   const at::Tensor& bias, int64_t rows, const at::Tensor& y) {
  TORCH_CHECK(u.dim() == 3 && B.dim() == 3, "expected [S, L, D], got ",
              u.sizes(), " and ", B.sizes());
  const int64_t sequences = u.size(0), length = u.size(1);
  const int64_t channels = u.size(2), states = B.size(2);
  for (const auto& [x, name] :
       {std::tuple(&u, "u"), std::tuple(&dt, "dt"), std::tuple(&y, "y")}) {
    CheckRows(*x, name, sequences, length, channels);
  }
  CheckRows(B, "B", sequences, length, states);
  CheckRows(C, "C", sequences, length, states);
  for (const at::Tensor* x : {&dt, &B, &C, &y}) {
    TORCH_CHECK(x->scalar_type() == u.scalar_type(), "expected ",
                u.scalar_type(), ", got ", x->scalar_type());
  }
  TORCH_CHECK(B.stride(1) == C.stride(1), "B and C: expected equal strides");
  const c10::cuda::CUDAGuard guard(u.device());
  ops::CudaDispatch(u, [&](auto type) {
    using T = decltype(type);
    kernels::SelectiveScanArgs<T> args;
    args.channels = static_cast<int>(channels);
    args.states = static_cast<int>(states);
    args.u = Values<T>(u);
    args.u_stride = u.stride(1);
    args.dt = Values<T>(dt);
    args.dt_stride = dt.stride(1);
    args.B = Values<T>(B);
    args.C = Values<T>(C);
    args.bc_stride = B.stride(1);
    args.y = static_cast<T*>(y.data_ptr());
    args.y_stride = y.stride(1);
    args.A = Parameter(A, "A", states * channels);
    args.a_stride = channels;
    args.D = Parameter(D, "D", channels);
    args.bias = Parameter(bias, "bias", channels);
    args.sequences = SequencesOf(u);
    kernels::ScanPlan plan;
    if (rows > 0) {
      plan.kernel = kernels::ScanPlan::kFold;
      plan.rows = static_cast<int>(rows);
    } else {
      plan = kernels::DefaultScanPlan(
          at::cuda::getCurrentDeviceProperties()->multiProcessorCount,
          args.sequences.count, args.sequences.length, args.channels,
          args.states);
    }
    const int64_t bytes = kernels::ScanScratchBytes(plan, args.sequences.count,
                                                    args.channels, args.states);
    const at::Tensor scratch = at::empty({bytes}, u.options().dtype(at::kByte));
    ops::CheckLaunch(kernels::SelectiveScanCuda(
        args, plan, bytes > 0 ? scratch.data_ptr() : nullptr,
        c10::cuda::getCurrentCUDAStream()));
  });
}

// Applies a mixer's two short convolutions, each followed by SiLU, in one
// launch. One convolution reads the first half of the channels of x [S,L,2D],
// the other the second half. Weights are [3,D], fp32. Returns u [S,L,D], the
// first result, and yz [S,L,2D]. The second half of yz is z, the second result.
// The caller writes the scan's result to the first half of yz.
std::tuple<at::Tensor, at::Tensor> ShortConvolutions(
    const at::Tensor& x, const at::Tensor& weight_u,
    const at::Tensor& weight_z) {
  TORCH_CHECK(x.dim() == 3 && x.size(2) % 2 == 0, "expected [S, L, 2 D], got ",
              x.sizes());
  CheckRows(x, "x", x.size(0), x.size(1), x.size(2));
  const int64_t channels = x.size(2) / 2;
  const at::Tensor u = at::empty({x.size(0), x.size(1), channels}, x.options());
  const at::Tensor yz = at::empty(x.sizes(), x.options());
  const c10::cuda::CUDAGuard guard(x.device());
  ops::CudaDispatch(x, [&](auto type) {
    using T = decltype(type);
    kernels::DepthwiseConv1dArgs<T> parts[2];
    parts[0].channels = static_cast<int>(channels);
    parts[0].taps = kTaps;
    parts[0].left = 1;
    parts[0].x = Values<T>(x);
    parts[0].x_stride = x.stride(1);
    parts[0].y = static_cast<T*>(u.data_ptr());
    parts[0].y_stride = channels;
    parts[0].weight = Parameter(weight_u, "weight_u", kTaps * channels);
    parts[0].bias = nullptr;
    parts[0].silu = true;
    parts[0].sequences = SequencesOf(x);
    parts[1] = parts[0];
    parts[1].x += channels;
    parts[1].y = static_cast<T*>(yz.data_ptr()) + channels;
    parts[1].y_stride = 2 * channels;
    parts[1].weight = Parameter(weight_z, "weight_z", kTaps * channels);
    ops::CheckLaunch(kernels::DepthwiseConv1dCuda(
        parts, 2, c10::cuda::getCurrentCUDAStream()));
  });
  return {u, yz};
}

}  // namespace

TORCH_LIBRARY(sfmamba_gpu, library) {
  library.def(
      "selective_scan(Tensor u, Tensor dt, Tensor A, Tensor B, Tensor C, "
      "Tensor D, Tensor bias, int rows, Tensor(a!) y) -> ()",
      SelectiveScan);
  library.def(
      "short_convolutions(Tensor x, Tensor weight_u, Tensor weight_z) -> "
      "(Tensor u, Tensor yz)",
      ShortConvolutions);
}

}  // namespace sfmamba
