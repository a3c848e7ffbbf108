#include "model/engine/block_cache.h"

#include <sys/mman.h>

#include <algorithm>

namespace sfmamba::engine {
namespace {

constexpr int64_t kPage = 4096;

// Rounds a size in bytes up to a multiple of a step. The step is an eighth of
// the largest power of two that does not exceed the size, but at least a page.
// Tensors of nearly the same size can then use the same blocks.
int64_t Rounded(int64_t bytes) {
  int64_t step = kPage;
  while (16 * step <= bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

// Returns new memory of the process, or null if the system has none left.
void* Map(int64_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // If madvise() fails, the memory has small pages, which also work.
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

}  // namespace

BlockCache::~BlockCache() {
  absl::MutexLock lock(&mu_);
  Unmap(kept_);
}

void* BlockCache::Take(int64_t bytes, int node, absl::Time now) {
  const int64_t size = Rounded(bytes);
  Block block;
  {
    absl::MutexLock lock(&mu_);
    block = TakeKept(size, node);
  }
  if (block.memory == nullptr) {
    block = {Map(size), size, node, now};
    if (block.memory == nullptr) return nullptr;
  }
  std::vector<Block> idle;
  {
    absl::MutexLock lock(&mu_);
    taken_.emplace(block.memory, block);
    taken_bytes_ += block.bytes;
    most_taken_ = std::max(most_taken_, taken_bytes_);
    idle = TakeIdle(now);
  }
  // Unmapping a large block takes long, so the lock is not held meanwhile.
  Unmap(idle);
  return block.memory;
}

bool BlockCache::Return(void* memory, absl::Time now) {
  std::vector<Block> idle;
  {
    absl::MutexLock lock(&mu_);
    const auto found = taken_.find(memory);
    if (found == taken_.end()) return false;
    kept_.push_back(found->second);
    kept_.back().returned = now;
    kept_bytes_ += kept_.back().bytes;
    taken_bytes_ -= kept_.back().bytes;
    taken_.erase(found);
    idle = TakeIdle(now);
  }
  Unmap(idle);
  return true;
}

void BlockCache::Release(absl::Time now) {
  std::vector<Block> idle;
  {
    absl::MutexLock lock(&mu_);
    idle = TakeIdle(now);
  }
  Unmap(idle);
}

// Takes the smallest unused block that fits. If several blocks have this size,
// takes the one that was returned last, because it may still be in the CPU's
// cache.
//
// A block fits if it belongs to `node` and has `bytes` to 5/4 * `bytes` bytes.
// A larger block of `node` fits only if two conditions hold. It must have at
// most 2 * `bytes` bytes. The used bytes, including this block, must not exceed
// their peak so far. Otherwise the block is left for larger tensors.
BlockCache::Block BlockCache::TakeKept(int64_t bytes, int node) {
  const int64_t below_peak = std::min(2 * bytes, most_taken_ - taken_bytes_);
  const int64_t largest = std::max(bytes + bytes / 4, below_peak);
  auto best = kept_.end();
  for (auto block = kept_.begin(); block != kept_.end(); ++block) {
    if (block->node != node || block->bytes < bytes || block->bytes > largest) {
      continue;
    }
    if (best == kept_.end() || block->bytes <= best->bytes) best = block;
  }
  if (best == kept_.end()) return {nullptr, 0, 0, absl::InfinitePast()};
  const Block block = *best;
  kept_.erase(best);
  kept_bytes_ -= block.bytes;
  return block;
}

std::vector<BlockCache::Block> BlockCache::TakeIdle(absl::Time now) {
  // Limits the bytes of all blocks, used and unused, to 5/4 of the peak of used
  // bytes.
  const int64_t most = most_taken_ + most_taken_ / 4;
  auto end = kept_.begin();
  while (end != kept_.end() &&
         (now - end->returned >= keep_ || taken_bytes_ + kept_bytes_ > most)) {
    kept_bytes_ -= end->bytes;
    ++end;
  }
  const std::vector<Block> idle(kept_.begin(), end);
  kept_.erase(kept_.begin(), end);
  return idle;
}

void BlockCache::Unmap(const std::vector<Block>& blocks) {
  for (const Block& block : blocks) munmap(block.memory, block.bytes);
}

}  // namespace sfmamba::engine
