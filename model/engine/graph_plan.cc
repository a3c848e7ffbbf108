#include "model/engine/graph_plan.h"

#include <algorithm>
#include <iterator>

namespace sfmamba::engine {

int PaddedBatchSize(int images) {
  int step = 1;
  while (8 * step < images) step *= 2;
  return (images + step - 1) / step * step;
}

std::vector<int> PaddedBatchSizes(int max_images) {
  std::vector<int> buckets;
  int bucket = PaddedBatchSize(max_images);
  while (bucket > 0) {
    buckets.push_back(bucket);
    // Searches for the next smaller size that needs no padding.
    --bucket;
    while (bucket > 0 && PaddedBatchSize(bucket) != bucket) --bucket;
  }
  return buckets;
}

GraphPlan::Step GraphPlan::Next(const Key& key, absl::Time now) const {
  const auto it = states_.find(key);
  if (it == states_.end()) {
    return static_cast<int>(states_.size()) < capacity_ ? Step::kCapture
                                                        : Step::kRun;
  }
  if (it->second.captured) return Step::kReplay;
  return now >= it->second.retry ? Step::kCapture : Step::kRun;
}

void GraphPlan::FailedToCapture(const Key& key, absl::Time now) {
  State& state = states_[key];
  state.captured = false;
  state.pause = state.pause == absl::ZeroDuration()
                    ? kFirstRetry
                    : std::min(2 * state.pause, kLastRetry);
  state.retry = now + state.pause;
}

void GraphPlan::Reset() {
  // The retry times of kinds that could not be captured stay. The cause of the
  // failure may still exist after the graphs are gone.
  for (auto it = states_.begin(); it != states_.end();) {
    it = it->second.captured ? states_.erase(it) : std::next(it);
  }
}

}  // namespace sfmamba::engine
