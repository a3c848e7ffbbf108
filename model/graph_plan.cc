#include "model/graph_plan.h"

#include <iterator>

namespace sfmamba {

int GraphBucket(int images) {
  int step = 1;
  while (8 * step < images) step *= 2;
  return (images + step - 1) / step * step;
}

GraphPlan::Step GraphPlan::Next(const Key& key) const {
  const auto it = states_.find(key);
  if (it == states_.end()) {
    return static_cast<int>(states_.size()) < capacity_ ? Step::kCapture
                                                        : Step::kRun;
  }
  return it->second == State::kCaptured ? Step::kReplay : Step::kRun;
}

void GraphPlan::Reset() {
  for (auto it = states_.begin(); it != states_.end();) {
    it = it->second == State::kCaptured ? states_.erase(it) : std::next(it);
  }
}

}  // namespace sfmamba
