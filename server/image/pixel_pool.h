#ifndef SFMAMBA_SERVER_IMAGE_PIXEL_POOL_H_
#define SFMAMBA_SERVER_IMAGE_PIXEL_POOL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sfmamba::image {

// The pixels of one input. They are stored in a vector or in memory of a
// PixelPool. The destructor returns the pool's memory to the pool.
class Pixels {
 public:
  Pixels() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  Pixels(std::vector<uint8_t> values) : own_(std::move(values)) {}
  Pixels(std::shared_ptr<uint8_t> pooled, size_t size)
      : pooled_(std::move(pooled)), size_(size) {}
  Pixels(Pixels&&) = default;
  Pixels& operator=(Pixels&&) = default;

  uint8_t* data() { return is_pooled() ? pooled_.get() : own_.data(); }
  const uint8_t* data() const {
    return is_pooled() ? pooled_.get() : own_.data();
  }
  size_t size() const { return is_pooled() ? size_ : own_.size(); }
  bool empty() const { return size() == 0; }
  const uint8_t* begin() const { return data(); }
  const uint8_t* end() const { return data() + size(); }
  const uint8_t& operator[](size_t i) const { return data()[i]; }

  bool is_pooled() const { return pooled_ != nullptr; }

  friend bool operator==(const Pixels& a, const Pixels& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::vector<uint8_t> own_;
  std::shared_ptr<uint8_t> pooled_;
  size_t size_ = 0;  // The size of pooled_ in bytes.
};

// Reuses memory for inputs of one size. Newly allocated memory would be slower,
// because it is cleared and often mapped page by page.
//
// Thread-safe. Pixels may outlive the pool.
class PixelPool {
 public:
  // `memory` consists of `count` slots of `bytes` bytes each. A slot holds the
  // pixels of one input. If `memory` is null, the pool has no slots.
  PixelPool(std::shared_ptr<uint8_t> memory, size_t bytes, size_t count)
      : bytes_(bytes), slots_(std::make_shared<Slots>()) {
    if (memory == nullptr) count = 0;
    absl::MutexLock lock(&slots_->mu);
    // Take() removes the last slot of `free`. The slots are therefore added in
    // reverse order, so that the slots at the start of `memory` are used first.
    // A server with little work then uses only a few slots and touches only a
    // few memory pages.
    for (size_t i = count; i > 0; --i) {
      slots_->free.push_back(memory.get() + (i - 1) * bytes);
    }
    slots_->memory = std::move(memory);
  }

  // Returns `bytes` bytes with unspecified values. The memory is a slot of the
  // pool if `bytes` is the size of a slot and a slot is free. Otherwise the
  // memory is newly allocated.
  Pixels Take(size_t bytes) {
    uint8_t* const slot = bytes == bytes_ ? slots_->Take() : nullptr;
    if (slot == nullptr) return std::vector<uint8_t>(bytes);
    return {std::shared_ptr<uint8_t>(
                slot, [slots = slots_](uint8_t* slot) { slots->Give(slot); }),
            bytes};
  }

 private:
  struct Slots {
    uint8_t* Take() ABSL_LOCKS_EXCLUDED(mu) {
      absl::MutexLock lock(&mu);
      if (free.empty()) return nullptr;
      uint8_t* const slot = free.back();
      free.pop_back();
      return slot;
    }
    void Give(uint8_t* slot) ABSL_LOCKS_EXCLUDED(mu) {
      absl::MutexLock lock(&mu);
      free.push_back(slot);
    }

    std::shared_ptr<uint8_t> memory;  // Constant after construction.
    absl::Mutex mu;
    std::vector<uint8_t*> free ABSL_GUARDED_BY(mu);
  };

  const size_t bytes_;
  const std::shared_ptr<Slots> slots_;
};

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_PIXEL_POOL_H_
