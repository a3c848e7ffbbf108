#ifndef SFMAMBA_SERVER_IMAGE_MEMORY_BUDGET_H_
#define SFMAMBA_SERVER_IMAGE_MEMORY_BUDGET_H_

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sfmamba::image {

// Bounds the memory that concurrent work takes. Thread-safe.
//
//   MemoryBudget::Share share(&budget, bytes);  // Waits for its turn.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t bytes) : bytes_(bytes), free_(bytes) {}

  // Holds `bytes` of the budget, or all of it if it has fewer, while it lives.
  // The constructor blocks until they are free.
  class Share {
   public:
    Share(MemoryBudget* budget, int64_t bytes)
        : budget_(*budget), bytes_(std::min(bytes, budget->bytes_)) {
      const auto fits = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(budget_.mu_) {
        return budget_.free_ >= bytes_;
      };
      absl::MutexLock lock(&budget_.mu_, absl::Condition(&fits));
      budget_.free_ -= bytes_;
    }
    ~Share() {
      absl::MutexLock lock(&budget_.mu_);
      budget_.free_ += bytes_;
    }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    MemoryBudget& budget_;
    const int64_t bytes_;
  };

 private:
  const int64_t bytes_;
  absl::Mutex mu_;
  int64_t free_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_MEMORY_BUDGET_H_
