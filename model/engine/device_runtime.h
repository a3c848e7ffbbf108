#ifndef SFMAMBA_MODEL_ENGINE_DEVICE_RUNTIME_H_
#define SFMAMBA_MODEL_ENGINE_DEVICE_RUNTIME_H_

#include <memory>

#include "ATen/core/Tensor.h"
#include "model/engine/device_stream.h"
#include "model/ops/device_ops.h"
#include "model/tuning/scan_plan_table.h"

namespace sfmamba::engine {

// Access to the GPUs of this process. Thread-safe. Methods throw c10::Error.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  virtual int count() const = 0;
  // Describes GPU `gpu`, which is below count().
  virtual tuning::ScanDevice Describe(int gpu) const = 0;
  virtual at::Device device(int gpu) const = 0;
  // Returns the implementation of the operations for these GPUs.
  virtual const ops::DeviceOps& ops() const = 0;
  virtual std::unique_ptr<DeviceStream> MakeStream(int gpu) const = 0;
  // Allocates pinned memory of the CPU, which all GPUs can read. Uses only GPU
  // `gpu` for the call. The first use of a GPU takes hundreds of MB of its
  // memory.
  virtual std::shared_ptr<uint8_t> AllocateHost(int gpu,
                                                int64_t bytes) const = 0;

  // Disables TF32 in the libraries, so that fp32 is computed in full precision.
  // Affects the whole process.
  virtual void ConfigureLibraries() const = 0;
  // Calls `load`, which copies weights to the GPU. Returns when the copies are
  // complete.
  virtual void Load(int gpu, const std::function<void()>& load) const = 0;
};

// Returns null in a build without CUDA. Three definitions of this function
// exist: for a build with CUDA, for a build without it, and for tests on the
// emulator.
const DeviceRuntime* Devices();

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_DEVICE_RUNTIME_H_
