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

// A recording of a device's work. It owns the memory that it uses. The
// DeviceStream that recorded it must outlive it.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  // Enqueues the work again, on the tensor that it was recorded with. Returns
  // its result, which is always in the same memory. Throws c10::Error.
  virtual at::Tensor Replay() = 0;
};

// A sequence of batches on a device: copies of inputs, work and copies of
// results. Batches run one after another. The copies of one DeviceStream
// overlap with the work of another.
//
// Must be made, used and destroyed by the same thread, since libraries keep
// handles, workspaces and chosen algorithms per thread. Methods other than
// Record() and Check() throw c10::Error.
class DeviceStream {
 public:
  // Its destructor ends the effect of Enter().
  class Scope {
   public:
    virtual ~Scope() = default;
  };

  virtual ~DeviceStream() = default;

  // While the result lives, this thread enqueues its work on this stream.
  virtual std::unique_ptr<Scope> Enter() = 0;

  // Allocate memory for `size` values: pinned CPU memory, which the device can
  // copy from and to asynchronously, and device memory.
  virtual at::Tensor AllocateHost(int64_t size, at::ScalarType type) = 0;
  virtual at::Tensor AllocateDevice(int64_t size, at::ScalarType type) = 0;

  // Enqueues a copy of `bytes` bytes from the CPU's memory to the device's.
  // Page-locked memory must not change until the copy is complete. Other memory
  // is read before this function returns.
  virtual void CopyIn(const void* host, void* device, int64_t bytes) = 0;
  // Makes all work that is enqueued later wait for all copies that were
  // enqueued before.
  virtual void EndCopyIn() = 0;
  // Copies `device` to `host` after all work that was enqueued before. Waits
  // for the copy.
  virtual void CopyOut(const at::Tensor& device, const at::Tensor& host) = 0;
  // Waits for all enqueued work.
  virtual void Wait() = 0;
  // Returns how long the device computed, by its own clock. The time begins
  // when the last CopyIn() is complete and ends when the last CopyOut() starts.
  // May be called only after this CopyOut() has returned.
  virtual absl::Duration ComputeTime() = 0;

  // Records the work that enqueue(input) enqueues, without running it. A replay
  // reads the values that `input` has at that time. `enqueue` must have run
  // once before. The graph may keep a copy of `enqueue`, which must therefore
  // not refer to its caller's locals. During the recording, no other thread may
  // wait for the device, see CaptureMutex. Returns an error if the work cannot
  // be recorded.
  virtual absl::StatusOr<std::unique_ptr<DeviceGraph>> Record(
      const at::Tensor& input,
      const std::function<at::Tensor(const at::Tensor& input)>& enqueue) = 0;

  // Must be called after an exception. Returns an error if the device has
  // failed permanently.
  virtual absl::Status Check() = 0;
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_DEVICE_STREAM_H_
