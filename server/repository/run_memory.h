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

// Accounts for the memory that batches of all models need in this process.
// Serving models take turns, so only the largest amount counts. Models that are
// being loaded run batches at the same time.
//
// Thread-safe. Models may outlive this object.
class RunMemory {
 public:
  // Keeps an amount reserved until the hold is destroyed. Null if nothing was
  // reserved.
  using Hold = std::shared_ptr<void>;

  // Registers a serving model whose batches need `bytes`, until the hold is
  // destroyed.
  Hold AddServed(int64_t bytes);
  // Returns the largest number of bytes that a batch of a serving model needs.
  int64_t most_served() const;

  // Reserves `bytes` of the memory that `free` returns, for a load. If the
  // memory is insufficient only because of other loads' reservations, waits for
  // these loads. Returns null if `stop` returns true first. Returns
  // RESOURCE_EXHAUSTED if the memory would be insufficient even without other
  // loads.
  absl::StatusOr<Hold> TakeForLoad(int64_t bytes,
                                   const std::function<int64_t()>& free,
                                   const std::function<bool()>& stop);
  // Returns the number of bytes that all loads have reserved with
  // TakeForLoad().
  int64_t taken_for_loads() const;

  // Waits for the exclusive right to use most of the free memory. Returns null
  // if `stop` returns true first.
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

// The batch size that fits into memory, and the memory needed.
struct BatchFit {
  int max_batch_size = 0;
  int64_t bytes = 0;  // For the batches of all contexts.
  // Set if the load needs most of the free memory. Held until the model serves.
  RunMemory::Hold most;
};

struct BatchFitOptions {
  // The number of bytes available for batches.
  int64_t free = 0;
  // The number of threads that compute a classifier's images. Each thread
  // computes whole images.
  int threads = 1;
  int max_batch_size = 1;
  RunMemory* memory = nullptr;  // Must not be null.
  // Called periodically. If it returns true, FitBatch() returns CANCELLED.
  std::function<bool()> stop = [] { return false; };
};

// Returns the largest batch size, up to `max_batch_size`, that fits if all
// contexts of `model` run concurrently. Measures the memory of an image by
// running black images. A small image runs first. Larger images follow unless
// the largest cannot fit. A run is aborted as soon as it would need more than
// the free memory. The memory of sizes that were not run is extrapolated in
// proportion to their pixels.
//
// Returns RESOURCE_EXHAUSTED if one image of the model's largest input does not
// fit. The message contains the needed and the free memory. On GPUs every batch
// size fits. The calling thread creates and uses the contexts.
absl::StatusOr<BatchFit> FitBatch(model::VisionModel& model,
                                  const BatchFitOptions& options);

// Formats a number of bytes for people, such as "20.6 GB".
std::string BytesText(int64_t bytes);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_RUN_MEMORY_H_
