#ifndef SFMAMBA_MODEL_ENGINE_DEVICE_STREAM_H_
#define SFMAMBA_MODEL_ENGINE_DEVICE_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace sfmamba::engine {

// What was recorded of a device's work. It keeps the memory that it uses, and
// goes before the DeviceStream that recorded it.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  // Enqueues the work once more, on the input that it was recorded on; returns
  // its answers, which are always in the same memory. Throws c10::Error.
  virtual at::Tensor Replay() = 0;
};

// One way through a device: the memory that batches arrive and leave by, and
// the order of their work. Batches go one after another; the copies of one
// stream overlap with the work of another.
//
// Made, used and destroyed by one thread: libraries keep handles, workspaces
// and the algorithms that they chose for each thread. But for Record() and
// Check(), methods throw c10::Error.
class DeviceStream {
 public:
  // Ends what Enter() began.
  class Scope {
   public:
    virtual ~Scope() = default;
  };

  virtual ~DeviceStream() = default;

  // While the result lives, this thread's work is enqueued here.
  virtual std::unique_ptr<Scope> Enter() = 0;

  // Memory for `size` values: of the CPU, in a form that the device copies from
  // and to by itself; and of the device.
  virtual at::Tensor AllocateHost(int64_t size, at::ScalarType type) = 0;
  virtual at::Tensor AllocateDevice(int64_t size, at::ScalarType type) = 0;

  // Enqueues a copy of all of `host`. Work that is enqueued later waits for it.
  virtual void CopyIn(const at::Tensor& host, const at::Tensor& device) = 0;
  // Copies `device` when all that was enqueued before is done, and waits.
  virtual void CopyOut(const at::Tensor& device, const at::Tensor& host) = 0;
  // Waits for all that was enqueued.
  virtual void Wait() = 0;
  // By the device's clock: from the end of the last CopyIn() to the start of
  // the last CopyOut(), which is over.
  virtual absl::Duration ComputeTime() = 0;

  // Records what `enqueue` enqueues, without doing it; the graph computes its
  // result of what then lies in `input`'s memory. `enqueue` must have run
  // before, and others may not wait for the device meanwhile: see CaptureMutex.
  // The error says why the work cannot be recorded.
  virtual absl::StatusOr<std::unique_ptr<DeviceGraph>> Record(
      const at::Tensor& input,
      const std::function<at::Tensor(const at::Tensor& input)>& enqueue) = 0;

  // After an exception: not OK if the device has failed for good.
  virtual absl::Status Check() = 0;
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_DEVICE_STREAM_H_
