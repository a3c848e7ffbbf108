#ifndef SFMAMBA_SERVER_IMAGE_PIXEL_POOL_H_
#define SFMAMBA_SERVER_IMAGE_PIXEL_POOL_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sfmamba::image {

// Memory of inputs that were computed, for those to come. New memory of this
// size is cleared, and often comes from the system page by page.
//
// Thread-safe.
class PixelPool {
 public:
  // Keeps at most `most` vectors, each of `bytes` bytes. With 0 bytes it keeps
  // none.
  PixelPool(size_t bytes, size_t most) : bytes_(bytes), most_(most) {}

  // Returns a vector of `bytes` values, each of them anything.
  std::vector<uint8_t> Take(size_t bytes) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      absl::MutexLock lock(&mu_);
      if (bytes == bytes_ && !free_.empty()) {
        std::vector<uint8_t> pixels = std::move(free_.back());
        free_.pop_back();
        return pixels;
      }
    }
    return std::vector<uint8_t>(bytes);
  }

  // Keeps the vector, or frees it if it has another size or enough are kept.
  void Give(std::vector<uint8_t> pixels) ABSL_LOCKS_EXCLUDED(mu_) {
    if (pixels.size() != bytes_ || bytes_ == 0) return;
    absl::MutexLock lock(&mu_);
    if (free_.size() < most_) free_.push_back(std::move(pixels));
  }

 private:
  const size_t bytes_, most_;
  absl::Mutex mu_;
  std::vector<std::vector<uint8_t>> free_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_PIXEL_POOL_H_
