#ifndef SFMAMBA_MODEL_ENGINE_BLOCK_CACHE_H_
#define SFMAMBA_MODEL_ENGINE_BLOCK_CACHE_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace sfmamba::engine {

// Large blocks of memory, kept for a while after they are returned. Memory that
// is new to the process is cleared by the system page by page, which takes
// longer than many an operator that writes to it.
//
// All blocks together, taken and kept, are at most 5/4 of the most that were
// ever taken at once: blocks of ever new sizes displace the oldest that are
// kept, so that no choice of sizes takes much more memory than no cache would.
//
// Thread-safe. Times are of any clock that is the same for all calls.
class BlockCache {
 public:
  // Blocks that stay unused for `keep` are given back to the system, when the
  // next one is taken or returned or Release() is called.
  explicit BlockCache(absl::Duration keep) : keep_(keep) {}
  // Every block has been returned.
  ~BlockCache();

  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Returns a block of at least `bytes` > 0, aligned to a page and of any
  // content; null if the system has no memory left. `node` is the part of the
  // machine whose memory is near: a block is taken again on its own node only.
  void* Take(int64_t bytes, int node, absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);

  // Takes a block back. Returns false if the block is not this cache's.
  bool Return(void* memory, absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);

  // Gives blocks that stayed unused for `keep` back to the system.
  void Release(absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the bytes of all unused blocks.
  int64_t kept_bytes() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return kept_bytes_;
  }

 private:
  struct Block {
    void* memory;
    int64_t bytes;
    int node;
    absl::Time returned;
  };

  // Removes a kept block that fits; one without memory if there is none.
  Block TakeKept(int64_t bytes, int node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Removes the blocks that stayed unused for keep_, and the oldest ones as
  // long as too much memory is kept.
  std::vector<Block> TakeIdle(absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Unmap(const std::vector<Block>& blocks);

  const absl::Duration keep_;
  mutable absl::Mutex mu_;
  std::vector<Block> kept_ ABSL_GUARDED_BY(mu_);  // By the time of return.
  std::unordered_map<void*, Block> taken_ ABSL_GUARDED_BY(mu_);
  int64_t kept_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t taken_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t most_taken_ ABSL_GUARDED_BY(mu_) = 0;  // At once, in bytes.
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_BLOCK_CACHE_H_
