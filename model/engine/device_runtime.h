#ifndef SFMAMBA_MODEL_ENGINE_DEVICE_RUNTIME_H_
#define SFMAMBA_MODEL_ENGINE_DEVICE_RUNTIME_H_

#include <memory>

#include "ATen/core/Tensor.h"
#include "model/engine/device_stream.h"
#include "model/tuning/scan_plan_table.h"

namespace sfmamba::engine {

// The GPUs of this process. Thread-safe. Methods throw c10::Error.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  virtual int count() const = 0;
  // Of the GPU `gpu`, below count().
  virtual tuning::ScanDevice Describe(int gpu) const = 0;
  virtual at::Device device(int gpu) const = 0;
  virtual std::unique_ptr<DeviceStream> MakeStream(int gpu) const = 0;

  // For the whole process: fp32 stays fp32.
  virtual void ConfigureLibraries() const = 0;
  // Loads weights: what `load` makes on the GPU is there when this returns.
  virtual void Load(int gpu, const std::function<void()>& load) const = 0;
};

// Null in a build without CUDA. What a build without it, one with it and tests
// on the emulator link differs in this function and in ops::DeviceOpsOf().
const DeviceRuntime* Devices();

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_DEVICE_RUNTIME_H_
