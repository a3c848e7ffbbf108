#include "server/batching/share_counters.h"

#include <algorithm>
#include <limits>

namespace sfmamba::batching {

double ShareCounters::LeastWaiting() const {
  double least = std::numeric_limits<double>::infinity();
  for (const Counter& counter : counters_) {
    if (counter.waits) least = std::min(least, counter.used);
  }
  return least;
}

void ShareCounters::SetWaits(Priority priority, bool waits) {
  Counter& counter = counters_[static_cast<int>(priority)];
  if (waits && !counter.waits) counter.used = std::max(counter.used, floor_);
  counter.waits = waits;
}

void ShareCounters::Charge(Priority priority, absl::Duration cost) {
  const double least = LeastWaiting();
  if (least < std::numeric_limits<double>::infinity()) {
    floor_ = std::max(floor_, least);
  }
  const int i = static_cast<int>(priority);
  counters_[i].used += absl::ToDoubleSeconds(cost) / kPriorityShares[i];
}

std::array<Priority, kPriorities> ShareCounters::Order() const {
  std::array<Priority, kPriorities> order = {Priority::kHigh, Priority::kNormal,
                                             Priority::kLow};
  std::stable_sort(order.begin(), order.end(), [this](Priority a, Priority b) {
    return counters_[static_cast<int>(a)].used <
           counters_[static_cast<int>(b)].used;
  });
  return order;
}

}  // namespace sfmamba::batching
