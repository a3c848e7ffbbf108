#include "model/engine/block_cache.h"

#include <sys/mman.h>

#include <algorithm>

namespace sfmamba::engine {
namespace {

constexpr int64_t kPage = 4096;

// Rounds up to a multiple of an eighth of the next lower power of two. Tensors
// of nearly the same size then share blocks.
int64_t Rounded(int64_t bytes) {
  int64_t step = kPage;
  while (16 * step <= bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

// Returns new memory, or null if the system has none.
void* Map(int64_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // An error is ignored: the memory then has small pages.
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
  // The blocks are unmapped without the lock, because this takes long for large
  // blocks.
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

// Takes the smallest block that fits. Among equal blocks, takes the one that
// was returned last, which may still be in the processor's cache.
//
// A block of more than 5/4 of the size is better left to larger tensors. It is
// taken only if it has at most twice the size and does not raise the peak use.
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
  // Limits all blocks, used and unused, to 5/4 of the peak use.
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
