#include "c10/cuda/CUDAStream.h"
#include "model/cuda_ops.h"
#include "model/device_ops.h"

namespace sfmamba::ops {
namespace {

CudaStream CurrentStream(const at::Tensor& x) {
  return c10::cuda::getCurrentCUDAStream(x.device().index()).stream();
}

const CudaOps kCudaOps(CurrentStream);

}  // namespace

const DeviceOps* DeviceOpsOf(const at::Tensor& x) {
  return x.is_cuda() ? &kCudaOps : nullptr;
}

}  // namespace sfmamba::ops
