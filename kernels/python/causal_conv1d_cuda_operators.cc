#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <vector>

#include "kernels/python/causal_conv1d_cuda.h"
#include "kernels/python/conv_inputs.h"
#include "kernels/python/device_tensors.h"

// The operators of causal_conv1d_operators.cc for tensors on a GPU.
namespace sfmamba::kernels {
namespace {

// Returns a tensor [batch, channels, tokens] as a batch with one group.
template <typename T>
StridedBatch<T> OneGroup(const Tensor& tensor) {
  return BatchOf<T>(tensor.unsqueeze(1));
}

template <typename T>
BatchConv1dArgs<T> ArgsOf(const ConvInputs& inputs) {
  using Real = Arithmetic<T>;
  BatchConv1dArgs<T> args;
  args.images = static_cast<int>(inputs.batch);
  args.channels = static_cast<int>(inputs.channels);
  args.taps = static_cast<int>(inputs.taps);
  args.tokens = inputs.tokens;
  args.period = inputs.period;
  args.silu = inputs.silu;
  args.x = OneGroup<const T>(inputs.x);
  if (inputs.initial.has_value()) {
    args.initial = OneGroup<const T>(*inputs.initial);
  }
  args.run = DataOrNull<int32_t>(inputs.seq_idx);
  args.weight = Data<Real>(inputs.weight);
  args.bias = DataOrNull<Real>(inputs.bias);
  return args;
}

Tensor Conv1d(const Tensor& x, const Tensor& weight, const OptionalTensor& bias,
              const OptionalTensor& seq_idx, const OptionalTensor& initial,
              bool silu, int64_t period) {
  const at::OptionalDeviceGuard guard(at::device_of(x));
  const ConvInputs inputs(x, weight, bias, seq_idx, initial, silu, period,
                          kMaxDeviceTaps);
  const Tensor out = at::empty_like(x);
  WithType(x.scalar_type(), [&](auto type) {
    using T = decltype(type);
    ExpectLaunched(BatchConv1dCuda(ArgsOf<T>(inputs), OneGroup<T>(out),
                                   c10::cuda::getCurrentCUDAStream()));
  });
  return out;
}

std::vector<Tensor> Conv1dBackward(const Tensor& grad_out, const Tensor& x,
                                   const Tensor& weight,
                                   const OptionalTensor& bias,
                                   const OptionalTensor& seq_idx,
                                   const OptionalTensor& initial, bool silu,
                                   int64_t period) {
  const at::OptionalDeviceGuard guard(at::device_of(x));
  const ConvInputs inputs(x, weight, bias, seq_idx, initial, silu, period,
                          kMaxDeviceTaps);
  Expect("grad_out", grad_out, x.sizes(), x.options());
  const ConvGradients gradients(inputs);
  WithType(x.scalar_type(), [&](auto type) {
    using T = decltype(type);
    using Real = Arithmetic<T>;
    BatchConv1dBackward<T> to;
    to.out = OneGroup<const T>(grad_out);
    to.x = OneGroup<T>(gradients.x);
    if (initial.has_value()) to.initial = OneGroup<T>(gradients.initial);
    to.weight = Data<Real>(gradients.weight);
    to.bias = Data<Real>(gradients.bias);
    ExpectLaunched(BatchConv1dGradientCuda(ArgsOf<T>(inputs), to,
                                           c10::cuda::getCurrentCUDAStream()));
  });
  return gradients.Sums(inputs);
}

}  // namespace

TORCH_LIBRARY_IMPL(sfmamba_scan, CUDA, library) {
  library.impl("causal_conv1d", Conv1d);
  library.impl("causal_conv1d_backward", Conv1dBackward);
}

}  // namespace sfmamba::kernels
