#include "model/tensor_memory.h"

#include <sched.h>

#include <cstring>
#include <new>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "c10/core/CPUAllocator.h"
#include "model/engine/block_cache.h"
#include "model/engine/tensor_account.h"
#include "model/engine/unkept_tensors.h"

namespace sfmamba::model {
namespace {

// The size, in bytes, of the smallest block that is cached here. malloc()
// already caches smaller blocks.
constexpr size_t kLeastBytes = 1 << 20;

// How long unused blocks are cached. Under load, the pauses between batches are
// shorter.
constexpr absl::Duration kKeep = absl::Seconds(10);

// Returns the process's cache. It is never destroyed, because threads may still
// free tensors after main().
engine::BlockCache& Cache() {
  static engine::BlockCache& cache = *new engine::BlockCache(kKeep);
  return cache;
}

int CurrentNode() {
  unsigned node = 0;
  return getcpu(nullptr, &node) == 0 ? static_cast<int>(node) : 0;
}

void Delete(void* memory) {
  engine::TensorAccount::Freed(memory);
  if (memory == nullptr || Cache().Return(memory, base::SteadyNow())) return;
  // The default allocator made this memory. raw_allocate() takes small memory
  // from it, but raw_deallocate() calls this function for memory of any size.
  c10::GetDefaultCPUAllocator()->raw_deleter()(memory);
}

class CachingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes < kLeastBytes || engine::UnkeptTensors::Any()) {
      return c10::GetDefaultCPUAllocator()->allocate(bytes);
    }
    const int64_t size = static_cast<int64_t>(bytes);
    engine::TensorAccount::Check(size);
    void* const memory = Cache().Take(size, CurrentNode(), base::SteadyNow());
    if (memory == nullptr) throw std::bad_alloc();
    engine::TensorAccount::Taken(memory, size);
    return {memory, memory, &Delete, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &Delete; }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

}  // namespace

void KeepTensorMemory() {
  c10::SetCPUAllocator(new CachingAllocator, /*priority=*/1);
}

void ReleaseIdleTensorMemory() { Cache().Release(base::SteadyNow()); }

}  // namespace sfmamba::model
