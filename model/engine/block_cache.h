#ifndef SFMAMBA_MODEL_ENGINE_BLOCK_CACHE_H_
#define SFMAMBA_MODEL_ENGINE_BLOCK_CACHE_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace sfmamba::engine {

// Allocates large blocks of memory and caches them for a while after they are
// returned. Cached memory is faster than memory that is new to the process,
// because Linux first clears new memory page by page. Many operators need less
// time to write to the memory than Linux needs to clear it.
//
// The used and the unused blocks together never exceed 5/4 of the peak of the
// used bytes. To keep this limit, the oldest unused blocks are unmapped. The
// size that a caller asks for is rounded up to a multiple of the page size, and
// by at most an eighth if it is large. A used block has at most twice the
// rounded size.
//
// Thread-safe. All calls must take their times from the same clock.
class BlockCache {
 public:
  // Blocks that stay unused for `keep` are unmapped, so that the system gets
  // their memory back. This happens in the next Take(), Return() or Release().
  explicit BlockCache(absl::Duration keep) : keep_(keep) {}
  // All blocks must have been returned to the cache.
  ~BlockCache();

  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Returns a block of at least `bytes` > 0 bytes. It is aligned to a page and
  // not cleared. Returns null if the system has no memory left. `node` is the
  // caller's NUMA node. A block is only used again on the node for which it was
  // made.
  void* Take(int64_t bytes, int node, absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);

  // Puts a block back into the cache and returns true. If the block is not from
  // this cache, does nothing and returns false.
  bool Return(void* memory, absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);

  // Unmaps the blocks that stayed unused for `keep`, so that the system gets
  // their memory back. Does not affect used blocks.
  void Release(absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the total size of all unused blocks in bytes.
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

  // Looks for an unused block of a fitting size. Removes this block from the
  // cache and returns it. If no block fits, the returned block has no memory.
  Block TakeKept(int64_t bytes, int node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Removes the blocks that stayed unused for keep_ and returns them. Also
  // removes the oldest blocks as long as the cached memory exceeds its limit.
  std::vector<Block> TakeIdle(absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Unmap(const std::vector<Block>& blocks);

  const absl::Duration keep_;
  mutable absl::Mutex mu_;
  std::vector<Block> kept_ ABSL_GUARDED_BY(mu_);  // In order of their return.
  std::unordered_map<void*, Block> taken_ ABSL_GUARDED_BY(mu_);
  int64_t kept_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t taken_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t most_taken_ ABSL_GUARDED_BY(mu_) = 0;  // The peak of taken_bytes_.
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_BLOCK_CACHE_H_
