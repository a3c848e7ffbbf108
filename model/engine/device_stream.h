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

// A captured piece of a device's work, which can be replayed. It owns the
// memory that the work uses. The DeviceStream that captured it must outlive it.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  // Enqueues the work again, with the same input tensor. Returns the work's
  // result, which is always at the same address. Throws c10::Error.
  virtual at::Tensor Replay() = 0;
};

// A queue of batches on a device. For each batch, it copies the inputs, does
// the work and copies the results back. Batches run one after another. The
// copies of one DeviceStream overlap with the work of another.
//
// Must be made, used and destroyed by the same thread, because libraries hold
// handles, workspaces and chosen algorithms per thread. Methods other than
// Record() and Check() throw c10::Error.
class DeviceStream {
 public:
  // The destructor of this object ends the effect of Enter().
  class Scope {
   public:
    virtual ~Scope() = default;
  };

  virtual ~DeviceStream() = default;

  // While the returned object exists, this thread's work is enqueued on this
  // stream.
  virtual std::unique_ptr<Scope> Enter() = 0;

  // Allocate memory for `size` values. AllocateHost() allocates pinned CPU
  // memory, which the device can read and write asynchronously.
  // AllocateDevice() allocates device memory.
  virtual at::Tensor AllocateHost(int64_t size, at::ScalarType type) = 0;
  virtual at::Tensor AllocateDevice(int64_t size, at::ScalarType type) = 0;

  // Enqueues a copy of `bytes` bytes from the CPU's memory to the device's. If
  // `host` is pinned memory, it must not change until the copy is complete. If
  // not, it is read before this function returns.
  virtual void CopyIn(const void* host, void* device, int64_t bytes) = 0;
  // Makes all work that is enqueued from now on wait for the copies that were
  // enqueued so far.
  virtual void EndCopyIn() = 0;
  // Copies `device` to `host` after all work that was enqueued before. Returns
  // when the copy is complete.
  virtual void CopyOut(const at::Tensor& device, const at::Tensor& host) = 0;
  // Waits for all enqueued work.
  virtual void Wait() = 0;
  // Returns how long the device computed, by the device's clock. The time
  // begins when the last CopyIn() is complete and ends when the last CopyOut()
  // starts. May be called only after this CopyOut() has returned.
  virtual absl::Duration ComputeTime() = 0;

  // Captures the work that enqueue(input) enqueues, without running it. A
  // replay reads the values that `input` has at the time of the replay.
  // `enqueue` must have been called once before. The graph may store a copy of
  // `enqueue`, so `enqueue` must not refer to local variables of its caller.
  // During the capture, no other thread may wait for the device, see
  // CaptureMutex. Returns an error if the work cannot be captured.
  virtual absl::StatusOr<std::unique_ptr<DeviceGraph>> Record(
      const at::Tensor& input,
      const std::function<at::Tensor(const at::Tensor& input)>& enqueue) = 0;

  // Returns an error if the device has failed permanently. Must be called after
  // each exception.
  virtual absl::Status Check() = 0;
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_DEVICE_STREAM_H_
