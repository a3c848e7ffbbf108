#include "model/engine/slot_pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace sfmamba::engine {

SlotPool::SlotPool(std::vector<std::unique_ptr<BatchSlot>> slots)
    : slots_(std::move(slots)) {
  for (const std::unique_ptr<BatchSlot>& slot : slots_) {
    free_.push_back(slot.get());
  }
}

absl::Status SlotPool::Run(absl::Span<const model::ModelInput> images,
                           absl::Span<model::Result> results,
                           model::RunInfo* info) {
  if (images.empty()) return absl::OkStatus();
  BatchSlot* const slot = Take();
  absl::Status status = health();
  if (status.ok()) status = RunInParts(*slot, images, results, info);
  GiveBack(slot);
  if (!health().ok()) {
    return absl::InternalError(
        absl::StrCat("the device has failed: ", health().message()));
  }
  return status;
}

absl::Status SlotPool::RunInEachSlot(
    absl::Span<const model::ModelInput> images) {
  std::vector<model::Result> results(images.size());
  model::RunInfo info;
  absl::Status status;
  for (size_t i = 0; i < slots_.size() && status.ok(); ++i) {
    // Run() takes the slot that has been free longest, so each slot in turn.
    status = Run(images, absl::MakeSpan(results), &info);
  }
  return status;
}

absl::Status SlotPool::health() const {
  absl::MutexLock lock(&mu_);
  return health_;
}

BatchSlot* SlotPool::Take() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(
      +[](std::deque<BatchSlot*>* free) { return !free->empty(); }, &free_));
  BatchSlot* const slot = free_.front();
  free_.pop_front();
  return slot;
}

void SlotPool::GiveBack(BatchSlot* slot) {
  const absl::Status health = slot->health();
  absl::MutexLock lock(&mu_);
  free_.push_back(slot);
  if (health_.ok()) health_ = health;
}

absl::Status SlotPool::RunInParts(BatchSlot& slot,
                                  absl::Span<const model::ModelInput> images,
                                  absl::Span<model::Result> results,
                                  model::RunInfo* info) {
  const Size size(images[0].height, images[0].width);
  for (size_t done = 0; done < images.size();) {
    const size_t count = Allowed(size, images.size() - done);
    const absl::Status status = slot.Run(images.subspan(done, count),
                                         results.subspan(done, count), info);
    if (status.ok()) {
      done += count;
    } else if (absl::IsResourceExhausted(status) && count > 1) {
      Shrink(size, count);
    } else {
      return status;
    }
  }
  return absl::OkStatus();
}

size_t SlotPool::Allowed(const Size& size, size_t wanted) const {
  absl::MutexLock lock(&mu_);
  const auto it = most_.find(size);
  return it == most_.end() ? wanted : std::min(wanted, it->second);
}

void SlotPool::Shrink(const Size& size, size_t images) {
  absl::MutexLock lock(&mu_);
  const auto [it, added] = most_.emplace(size, images / 2);
  if (!added) it->second = std::min(it->second, images / 2);
}

}  // namespace sfmamba::engine
