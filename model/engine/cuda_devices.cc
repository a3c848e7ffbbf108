#include <cuda_runtime_api.h>

#include "ATen/Context.h"
#include "ATen/cuda/CUDAContextLight.h"
#include "ATen/ops/_addmm_activation.h"
#include "ATen/ops/cudnn_convolution.h"
#include "ATen/ops/mm.h"
#include "absl/base/attributes.h"
#include "c10/cuda/CUDAException.h"
#include "c10/cuda/CUDAGuard.h"
#include "c10/cuda/CUDAStream.h"
#include "kernels/scan/scan_build_id.h"
#include "model/engine/cuda_device_stream.h"
#include "model/engine/device_runtime.h"
#include "model/ops/cuda/cuda_ops.h"
#include "model/ops/device_ops.h"

namespace sfmamba::engine {
namespace {

c10::DeviceIndex Index(int gpu) { return static_cast<c10::DeviceIndex>(gpu); }

kernels::CudaStream CurrentStream(const at::Tensor& x) {
  return c10::cuda::getCurrentCUDAStream(x.device().index()).stream();
}

// Returns whether the convolution can be computed as a product of two matrices.
// Their shapes are [pixels, channels] and [channels, outputs].
bool IsPointwise(const at::Tensor& x, const ops::ConvWeights& weights) {
  return weights.groups == 1 && weights.weight.size(2) == 1 &&
         weights.weight.size(3) == 1 && weights.stride == 1 &&
         weights.padding == 0 &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast);
}

// Returns the convolution of x [N, C, H, W] by weight [O, C, 1, 1] as [N, O, H,
// W]. All maps are channels-last in memory. cuBLAS computes it as a matrix
// product, so no search for algorithms is needed.
at::Tensor MultiplyChannels(const at::Tensor& x, const at::Tensor& weight) {
  const int64_t outputs = weight.size(0), channels = weight.size(1);
  return at::mm(x.permute({0, 2, 3, 1}).reshape({-1, channels}),
                weight.reshape({outputs, channels}).t())
      .view({x.size(0), x.size(2), x.size(3), outputs})
      .permute({0, 3, 1, 2});
}

// Overrides the operations for which libtorch's defaults are not the best
// choice.
class GpuOps : public ops::CudaOps {
 public:
  GpuOps() : ops::CudaOps(CurrentStream) {}

  at::Tensor LinearGeluTanh(const at::Tensor& x, const at::Tensor& W,
                            const at::Tensor& bias) const override {
    // In half precision, cuBLAS computes GELU together with the product.
    return at::_addmm_activation(bias, x, W.t(), /*beta=*/1, /*alpha=*/1,
                                 /*use_gelu=*/true);
  }
  at::Tensor Convolve(const at::Tensor& x,
                      const ops::ConvWeights& weights) const override {
    if (IsPointwise(x, weights)) return MultiplyChannels(x, weights.weight);
    // A search for the fastest algorithm takes some 40 ms for each number of
    // images. Batches of up to 128 images, the default maximum, are padded to
    // 24 different numbers. Therefore cuDNN searches only if the number is a
    // power of two. For other numbers, it chooses by a heuristic.
    const int64_t images = x.size(0);
    const bool search = weights.search == ops::ConvSearch::kMeasure &&
                        (images & (images - 1)) == 0;
    const bool fixed = weights.search == ops::ConvSearch::kFixed;
    return at::cudnn_convolution(
               x, weights.weight, {weights.padding, weights.padding},
               {weights.stride, weights.stride}, /*dilation=*/{1, 1},
               weights.groups, /*benchmark=*/search, /*deterministic=*/fixed,
               /*allow_tf32=*/false)
        .contiguous(at::MemoryFormat::ChannelsLast);  // Usually no copy.
  }
};

const ops::DeviceOps& TheOps() {
  static const ops::DeviceOps& ops = *new GpuOps;
  return ops;
}

class CudaRuntime : public DeviceRuntime {
 public:
  int count() const override { return at::cuda::device_count(); }

  tuning::ScanDevice Describe(int gpu) const override {
    const cudaDeviceProp* properties =
        at::cuda::getDeviceProperties(Index(gpu));
    return {properties->name, properties->multiProcessorCount,
            kernels::ScanBuildId()};
  }

  at::Device device(int gpu) const override {
    return at::Device(at::kCUDA, Index(gpu));
  }

  const ops::DeviceOps& ops() const override { return TheOps(); }

  std::unique_ptr<DeviceStream> MakeStream(int gpu) const override {
    return std::make_unique<CudaDeviceStream>(Index(gpu));
  }

  std::shared_ptr<uint8_t> AllocateHost(int gpu, int64_t bytes) const override {
    const c10::cuda::CUDAGuard guard(Index(gpu));
    void* memory = nullptr;
    C10_CUDA_CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable));
    return {static_cast<uint8_t*>(memory),
            [](uint8_t* memory) { cudaFreeHost(memory); }};
  }

  void ConfigureLibraries() const override {
    // TF32 has only 10 bits of mantissa, which is too few for a model in fp32.
    at::globalContext().setAllowTF32CuDNN(false);
    at::globalContext().setAllowTF32CuBLAS(false);
    // Each convolution decides by itself whether cuDNN searches for algorithms.
    at::globalContext().setBenchmarkCuDNN(false);
  }

  void Load(int gpu, const std::function<void()>& load) const override {
    const c10::cuda::CUDAGuard guard(Index(gpu));
    load();
    // Contexts read the weights on other streams, so the copies of the weights
    // must be complete.
    at::cuda::getCurrentCUDAStream().synchronize();
  }
};

}  // namespace

// This function is weak, so that tests on the emulator can define their own
// Devices().
ABSL_ATTRIBUTE_WEAK const DeviceRuntime* Devices() {
  static const DeviceRuntime* const runtime = new CudaRuntime;
  return runtime;
}

}  // namespace sfmamba::engine
