#include "model/engine/cuda_device_stream.h"

#include <cuda_runtime_api.h>

#include <mutex>
#include <tuple>
#include <utility>

#include "ATen/core/CachingHostAllocator.h"
#include "ATen/cuda/CUDAContextLight.h"
#include "ATen/ops/empty.h"
#include "absl/strings/str_cat.h"
#include "c10/cuda/CUDACachingAllocator.h"
#include "c10/cuda/CUDAException.h"
#include "c10/cuda/CUDAGuard.h"
#include "model/engine/torch_errors.h"

namespace sfmamba::engine {
namespace {

class CudaScope : public DeviceStream::Scope {
 public:
  explicit CudaScope(c10::cuda::CUDAStream stream) : guard_(stream) {}

 private:
  const c10::cuda::CUDAStreamGuard guard_;
};

class CudaDeviceGraph : public DeviceGraph {
 public:
  at::Tensor Replay() override {
    graph.replay();
    return answers;
  }

  std::shared_ptr<const at::cuda::MempoolId_t> memory;
  at::cuda::CUDAGraph graph;
  at::Tensor answers;  // Each replay overwrites these.
};

// Calls `body`. If `body` throws an exception, returns CaughtError().
template <typename Body>
absl::Status Try(Body body) {
  try {
    body();
    return absl::OkStatus();
  } catch (...) {
    return CaughtError();
  }
}

// Frees the workspaces that a library such as cuBLAS holds for `stream`.
void DropWorkspaces(at::cuda::WorkspaceMapWithMutex& workspaces,
                    const void* stream) {
  const std::unique_lock<std::shared_mutex> lock(workspaces.mutex);
  for (auto it = workspaces.map.begin(); it != workspaces.map.end();) {
    it = std::get<1>(it->first) == stream ? workspaces.map.erase(it)
                                          : std::next(it);
  }
}

// Returns whether the graph's destructor releases the graph's reference to the
// memory pool. The destructor does so if the capture succeeded, even if the GPU
// then had too little memory to make an executable graph.
bool ReleasesItsPool(at::cuda::CUDAGraph& graph) {
  return Try([&] { graph.pool(); }).ok();
}

}  // namespace

CudaDeviceStream::CudaDeviceStream(c10::DeviceIndex gpu)
    : gpu_(gpu), copy_in_(gpu), compute_(gpu), copy_out_(gpu) {}

CudaDeviceStream::~CudaDeviceStream() {
  const absl::Status freed = Try([this] {
    const c10::cuda::CUDAGuard device(gpu_);
    Wait();
    // Without these calls, libraries would hold the stream's workspaces until
    // the process ends.
    const void* const stream = compute_.get().stream();
    DropWorkspaces(at::cuda::cublas_handle_stream_to_workspace(), stream);
    DropWorkspaces(at::cuda::cublaslt_handle_stream_to_workspace(), stream);
    c10::cuda::CUDACachingAllocator::emptyCache();
  });
  freed.IgnoreError();  // A GPU that has failed cannot free memory.
}

std::unique_ptr<DeviceStream::Scope> CudaDeviceStream::Enter() {
  return std::make_unique<CudaScope>(compute_.get());
}

at::Tensor CudaDeviceStream::AllocateHost(int64_t size, at::ScalarType type) {
  return at::empty({size}, at::TensorOptions().dtype(type).pinned_memory(true));
}

at::Tensor CudaDeviceStream::AllocateDevice(int64_t size, at::ScalarType type) {
  return at::empty({size},
                   at::TensorOptions(at::Device(at::kCUDA, gpu_)).dtype(type));
}

void CudaDeviceStream::CopyIn(const void* host, void* device, int64_t bytes) {
  C10_CUDA_CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice,
                                 copy_in_.get().stream()));
}

void CudaDeviceStream::EndCopyIn() {
  copied_in_.record(copy_in_.get());
  // The work starts when the copy is complete, so the measured time does not
  // include the copy.
  copied_in_.block(compute_.get());
  started_.record(compute_.get());
}

void CudaDeviceStream::CopyOut(const at::Tensor& device,
                               const at::Tensor& host) {
  computed_.record(compute_.get());
  computed_.block(copy_out_.get());
  {
    const c10::cuda::CUDAStreamGuard stream(copy_out_.get());
    host.copy_(device, /*non_blocking=*/true);
    copied_out_.record(copy_out_.get());
  }
  copied_out_.synchronize();
}

void CudaDeviceStream::Wait() { compute_.get().synchronize(); }

absl::Duration CudaDeviceStream::ComputeTime() {
  return absl::Milliseconds(started_.elapsed_time(computed_));
}

absl::StatusOr<std::unique_ptr<DeviceGraph>> CudaDeviceStream::Record(
    const at::Tensor& input,
    const std::function<at::Tensor(const at::Tensor&)>& enqueue) {
  auto graph = std::make_unique<CudaDeviceGraph>();
  graph->memory = graph_memory_.lock();
  if (graph->memory == nullptr) {
    graph->memory = std::make_shared<const at::cuda::MempoolId_t>(
        at::cuda::graph_pool_handle());
    graph_memory_ = graph->memory;
  }
  absl::Status recorded = Try([&] {
    // In the thread-local mode, other threads may allocate memory during the
    // capture.
    graph->graph.capture_begin(*graph->memory,
                               cudaStreamCaptureModeThreadLocal);
    graph->answers = enqueue(input);
  });
  // The capture must end even after an error. Otherwise the stream would
  // continue to record.
  const absl::Status ended = Try([&] { graph->graph.capture_end(); });
  recorded.Update(ended);
  if (recorded.ok()) return graph;
  // The graph's reference to the pool must be released exactly once, either by
  // the graph's destructor or here. After two releases, the pool could be freed
  // while other graphs still use it. The destructor of the last of these graphs
  // would then fail an assertion, which ends the process.
  if (!ended.ok() && !ReleasesItsPool(graph->graph)) {
    const at::cuda::MempoolId_t pool = *graph->memory;
    at::HostAllocator* const host = at::getHostAllocator(at::kCUDA);
    const auto attempt = [](auto step) { Try(step).IgnoreError(); };
    // Does the cleanup that capture_end() did not reach. The allocators would
    // otherwise still call `graph`, which is about to be destroyed.
    attempt([&] {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(gpu_, pool);
    });
    attempt([&] { host->end_allocate_to_pool(pool); });
    attempt([&] { c10::cuda::CUDACachingAllocator::releasePool(gpu_, pool); });
    attempt([&] { host->release_pool(pool); });
  }
  cudaGetLastError();  // Clears a launch error, because `recorded` contains it.
  graph_memory_.reset();  // A pool cannot be reused after a failed capture.
  return recorded;
}

absl::Status CudaDeviceStream::Check() {
  cudaError_t error = cudaSetDevice(gpu_);
  // Clears the error of a refused launch, which is temporary.
  cudaGetLastError();
  // All other errors are permanent, for example illegal addresses, failed
  // launches and ECC errors. A wait for a stream returns such an error. This
  // function waits only for the streams of this object and not for the whole
  // device. The reason is that another thread may be capturing a graph, and a
  // wait for the device is not allowed during a capture.
  for (const CudaOwnStream* stream : {&copy_in_, &compute_, &copy_out_}) {
    if (error == cudaSuccess) {
      error = cudaStreamSynchronize(stream->get().stream());
    }
  }
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("GPU ", int{gpu_}, ": ", cudaGetErrorString(error)));
}

}  // namespace sfmamba::engine
