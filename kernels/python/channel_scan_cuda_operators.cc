#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <tuple>
#include <vector>

#include "kernels/python/channel_scan_cuda.h"
#include "kernels/python/device_tensors.h"
#include "kernels/python/scan_inputs.h"

// The operators of channel_scan_operators.cc for tensors on a GPU.
namespace sfmamba::kernels {
namespace {

// Returns a tensor [batch, channels, tokens] as a tensor [batch, groups,
// channels of a group, tokens].
template <typename T>
StridedBatch<T> Grouped(const Tensor& tensor, const ScanInputs& inputs) {
  return BatchOf<T>(
      tensor.unflatten(1, {inputs.groups, inputs.channels / inputs.groups}));
}

template <typename T>
BatchScanArgs<T> ArgsOf(const ScanInputs& inputs) {
  using Real = Arithmetic<T>;
  BatchScanArgs<T> args;
  args.images = static_cast<int>(inputs.batch);
  args.groups = static_cast<int>(inputs.groups);
  args.channels = static_cast<int>(inputs.channels / inputs.groups);
  args.states = static_cast<int>(inputs.states);
  args.tokens = inputs.tokens;
  args.period = inputs.period;
  args.softplus = inputs.softplus;
  args.u = Grouped<const T>(inputs.u, inputs);
  args.delta = Grouped<const T>(inputs.delta, inputs);
  if (inputs.z.has_value()) args.z = Grouped<const T>(*inputs.z, inputs);
  args.B = BatchOf<const T>(inputs.B);
  args.C = BatchOf<const T>(inputs.C);
  args.A = Data<Real>(inputs.A);
  args.D = DataOrNull<Real>(inputs.D);
  args.bias = DataOrNull<Real>(inputs.bias);
  return args;
}

std::tuple<Tensor, Tensor> SelectiveScan(
    const Tensor& u, const Tensor& delta, const Tensor& A, const Tensor& B,
    const Tensor& C, const OptionalTensor& D, const OptionalTensor& z,
    const OptionalTensor& bias, bool softplus, int64_t period) {
  const at::OptionalDeviceGuard guard(at::device_of(u));
  const ScanInputs inputs(u, delta, A, B, C, D, z, bias, softplus, period,
                          kMaxDeviceStates);
  const Tensor out = at::empty_like(u);
  const Tensor last =
      at::empty({inputs.batch, inputs.channels, inputs.states}, A.options());
  WithType(u.scalar_type(), [&](auto type) {
    using T = decltype(type);
    const BatchScanForward<T> results{Grouped<T>(out, inputs),
                                      Data<Arithmetic<T>>(last)};
    ExpectLaunched(BatchScanCuda(ArgsOf<T>(inputs), results,
                                 c10::cuda::getCurrentCUDAStream()));
  });
  return {out, last};
}

std::vector<Tensor> SelectiveScanBackward(
    const Tensor& grad_out, const OptionalTensor& grad_last, const Tensor& u,
    const Tensor& delta, const Tensor& A, const Tensor& B, const Tensor& C,
    const OptionalTensor& D, const OptionalTensor& z,
    const OptionalTensor& bias, bool softplus, int64_t period) {
  const at::OptionalDeviceGuard guard(at::device_of(u));
  const ScanInputs inputs(u, delta, A, B, C, D, z, bias, softplus, period,
                          kMaxDeviceStates);
  ExpectGradients(inputs, grad_out, grad_last);
  const OptionalTensor last = Contiguous(grad_last);
  std::vector<Tensor> sums;
  WithType(u.scalar_type(), [&](auto type) {
    using T = decltype(type);
    using Real = Arithmetic<T>;
    const BatchScanArgs<T> args = ArgsOf<T>(inputs);
    const ScanGradients gradients(inputs, BatchScanRanges(args));
    const Tensor saved = at::empty({BatchScanSaved(args)}, A.options());
    BatchScanBackward<T> to;
    to.out = Grouped<const T>(grad_out, inputs);
    to.last_state = DataOrNull<Real>(last);
    to.u = Grouped<T>(gradients.u, inputs);
    to.delta = Grouped<T>(gradients.delta, inputs);
    if (z.has_value()) to.z = Grouped<T>(gradients.z, inputs);
    to.A = Data<Real>(gradients.A);
    to.D = Data<Real>(gradients.D);
    to.bias = Data<Real>(gradients.bias);
    to.B = Data<Real>(gradients.B);
    to.C = Data<Real>(gradients.C);
    to.saved = Data<Real>(saved);
    ExpectLaunched(
        BatchScanGradientCuda(args, to, c10::cuda::getCurrentCUDAStream()));
    sums = gradients.Sums(inputs, B, C);
  });
  return sums;
}

}  // namespace

TORCH_LIBRARY_IMPL(sfmamba_scan, CUDA, library) {
  library.impl("selective_scan", SelectiveScan);
  library.impl("selective_scan_backward", SelectiveScanBackward);
}

}  // namespace sfmamba::kernels
