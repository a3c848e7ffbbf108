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

// The memory that batches of all models take in this process. Models that serve
// take turns. Models that are being loaded run batches beside them.
//
// Thread-safe. Models may outlive it.
class RunMemory {
 public:
  // Keeps what the method that returned it takes, until it is destroyed. Null:
  // nothing was taken.
  using Hold = std::shared_ptr<void>;

  // A model whose batches take `bytes` serves as long as the hold exists.
  Hold AddServed(int64_t bytes);
  // The most that a batch of a model that serves takes.
  int64_t most_served() const;

  // Takes `bytes` of what `free` returns for a load until the hold is gone.
  // Waits if only other loads have too many of them. Null if `stop` returns
  // true before; RESOURCE_EXHAUSTED if there are too few without other loads.
  absl::StatusOr<Hold> TakeForLoad(int64_t bytes,
                                   const std::function<int64_t()>& free,
                                   const std::function<bool()>& stop);
  // What all loads have taken by TakeForLoad().
  int64_t taken_for_loads() const;

  // Waits for the right to take most of the free memory, which one load has at
  // a time. Null if `stop` returns true before.
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

// How a model's batches fit into the memory.
struct BatchFit {
  int max_batch_size = 0;
  int64_t bytes = 0;  // What the batches of all contexts take.
  // Not null if a load of the model takes most of the free memory, until the
  // model serves.
  RunMemory::Hold most;
};

struct BatchFitOptions {
  // The bytes that batches may take.
  int64_t free = 0;
  // The threads that compute a classifier's images, each a whole image.
  int threads = 1;
  int max_batch_size = 1;
  RunMemory* memory = nullptr;  // Not null.
  // Asked now and then whether to end with CANCELLED.
  std::function<bool()> stop = [] { return false; };
};

// Returns the largest batch size, up to `max_batch_size`, that fits if all
// contexts of `model` run. What an image takes is measured by runs of black
// images: of a small one first, then of larger ones unless the largest cannot
// fit. A run ends as soon as it would take more than is free. Sizes that were
// not run are extrapolated by their pixels.
//
// RESOURCE_EXHAUSTED if one image of the model's largest input does not fit.
// The message says how much is needed and how much is free. Everything fits if
// the model is on GPUs. Contexts are made and used by the calling thread.
absl::StatusOr<BatchFit> FitBatch(model::VisionModel& model,
                                  const BatchFitOptions& options);

// Returns a number of bytes as people read it, such as "20.6 GB".
std::string BytesText(int64_t bytes);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_RUN_MEMORY_H_
