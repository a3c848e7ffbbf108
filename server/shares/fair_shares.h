#ifndef SFMAMBA_SERVER_SHARES_FAIR_SHARES_H_
#define SFMAMBA_SERVER_SHARES_FAIR_SHARES_H_

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/shares/priority.h"

namespace sfmamba::server {

// Says how far each flow has been served, in a virtual time. A resource that
// always serves the waiting flow with the earliest StartOf() is shared as
// kPriorityShares says. A flow that waited for nothing saves nothing up: it
// starts at the virtual time, now().
// Source: start-time fair queueing (Goyal, Vin and Cheng, 1996).
//
//   const Flow next = ...;  // The waiting flow with the least StartOf().
//   shares.AdvanceTo(shares.StartOf(next));
//   shares.Charge(next, cost, priority);
//
// Flow is a number, an enum or a pair of them. Thread-compatible.
template <typename Flow>
class FairShares {
 public:
  // The virtual time. It never falls.
  absl::Duration now() const { return now_; }
  void AdvanceTo(absl::Duration time) { now_ = std::max(now_, time); }

  // The virtual time at which the flow's next service starts.
  absl::Duration StartOf(const Flow& flow) const {
    const auto it = served_.find(flow);
    return it == served_.end() ? now_ : std::max(now_, it->second);
  }

  // Charges a service to the flow, and returns when it ends.
  absl::Duration Charge(const Flow& flow, absl::Duration cost,
                        Priority priority) {
    return served_[flow] = StartOf(flow) + Weighted(cost, priority);
  }
  // A service that was charged to the flow cost `more`, which may be negative.
  // Ignores a flow that was forgotten.
  void Correct(const Flow& flow, absl::Duration more, Priority priority) {
    const auto it = served_.find(flow);
    if (it != served_.end()) it->second += Weighted(more, priority);
  }
  void Forget(const Flow& flow) { served_.erase(flow); }

  // A service of `cost` in virtual time.
  static absl::Duration Weighted(absl::Duration cost, Priority priority) {
    return cost / kPriorityShares[static_cast<int>(priority)];
  }

 private:
  absl::Duration now_;
  absl::flat_hash_map<Flow, absl::Duration> served_;  // Until when.
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SHARES_FAIR_SHARES_H_
