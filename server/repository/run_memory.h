#ifndef SFMAMBA_SERVER_REPOSITORY_RUN_MEMORY_H_
#define SFMAMBA_SERVER_REPOSITORY_RUN_MEMORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "model/vision_model.h"

namespace sfmamba::repository {

// Accounts for the memory that this process needs to load models and to run
// batches. Loaded models take turns to run their batches, so only the loaded
// model with the largest need counts. Several models may be loading at the same
// time, so the needs of all loads are added.
//
// Thread-safe. Models may outlive this object.
class RunMemory {
 public:
  // Represents a reservation: a registered model, reserved bytes or the
  // exclusive right of TakeMost(). The reservation ends when the last copy of
  // the pointer is destroyed. Null if nothing was reserved.
  using Hold = std::shared_ptr<void>;

  // Registers a serving model whose batches need `bytes` bytes.
  Hold AddServed(int64_t bytes);
  // Returns the number of bytes that the registered model with the largest need
  // takes for its batches, or 0 if no model is registered.
  int64_t most_served() const;

  // Reserves `bytes` bytes for a load. `free` returns the number of free bytes.
  // If the free memory is insufficient only because other loads have reserved
  // memory, waits until these loads have ended. Returns null if `stop` returns
  // true first. Returns RESOURCE_EXHAUSTED if the free memory would be
  // insufficient even without other loads.
  absl::StatusOr<Hold> TakeForLoad(int64_t bytes,
                                   const std::function<int64_t()>& free,
                                   const std::function<bool()>& stop);
  // Returns the number of bytes that all loads have reserved with
  // TakeForLoad().
  int64_t taken_for_loads() const;

  // Returns the exclusive right to use most of the free memory. Waits while
  // another load has this right. Returns null if `stop` returns true first.
  Hold TakeMost(const std::function<bool()>& stop);

 private:
  struct State {
    absl::Mutex mu;
    std::multiset<int64_t> served ABSL_GUARDED_BY(mu);
    bool most_taken ABSL_GUARDED_BY(mu) = false;
    int64_t for_loads ABSL_GUARDED_BY(mu) = 0;
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// The result of FitBatch(): the batch size that fits into memory, and the
// memory that the batches need.
struct BatchFit {
  int max_batch_size = 0;
  // The memory in bytes for concurrent batches in all contexts.
  int64_t bytes = 0;
  // The exclusive right to use most of the free memory. Null if the measurement
  // did not need this right. The load releases the right when the model serves.
  RunMemory::Hold most;
};

struct BatchFitOptions {
  // The number of bytes available for batches.
  int64_t free = 0;
  int max_batch_size = 1;
  RunMemory* memory = nullptr;  // Must not be null.
  // Called periodically. If it returns true, FitBatch() returns CANCELLED.
  std::function<bool()> stop = [] { return false; };
};

// Returns the largest batch size, at most `max_batch_size`, that fits into
// memory if all contexts of `model` run batches concurrently.
//
// To measure the memory of one image, runs black images of increasing size up
// to the model's largest input. Stops early if the largest input cannot fit.
// Aborts a run as soon as it would need more than the free memory. On GPUs,
// runs nothing and returns `max_batch_size`. Creates one context, which only
// the calling thread uses.
//
// Returns RESOURCE_EXHAUSTED if one image of the model's largest input does not
// fit. The message contains the needed and the free memory. If the largest
// input was not run, the needed memory is extrapolated in proportion to the
// pixels.
absl::StatusOr<BatchFit> FitBatch(model::VisionModel& model,
                                  const BatchFitOptions& options);

// Formats a number of bytes for people, such as "20.6 GB".
std::string BytesText(int64_t bytes);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_RUN_MEMORY_H_
