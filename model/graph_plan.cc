#include "model/graph_plan.h"

namespace sfmamba {

int GraphBucket(int images) {
  int step = 1;
  while (8 * step < images) step *= 2;
  return (images + step - 1) / step * step;
}

GraphPlan::Step GraphPlan::Next(const Key& key) const {
  const auto it = states_.find(key);
  if (it == states_.end() || it->second == State::kRefused) return Step::kRun;
  return it->second == State::kWarm ? Step::kCapture : Step::kReplay;
}

void GraphPlan::DidRun(const Key& key) {
  if (static_cast<int>(states_.size()) < capacity_) {
    states_.emplace(key, State::kWarm);
  }
}

void GraphPlan::DidCapture(const Key& key) { states_[key] = State::kCaptured; }

void GraphPlan::FailedToCapture(const Key& key) {
  states_[key] = State::kRefused;
}

void GraphPlan::Reset() {
  for (auto& [key, state] : states_) {
    if (state == State::kCaptured) state = State::kWarm;
  }
}

}  // namespace sfmamba
