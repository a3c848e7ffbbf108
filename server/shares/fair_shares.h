#ifndef SFMAMBA_SERVER_SHARES_FAIR_SHARES_H_
#define SFMAMBA_SERVER_SHARES_FAIR_SHARES_H_

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/shares/priority.h"

namespace sfmamba::server {

// Tracks how much of a resource each flow (for example a client) has used. If
// the resource always serves the waiting flow with the lowest StartOf(), the
// flows share the resource in the ratio of their weights. kPriorityShares
// contains the weight of each priority. All charges of one flow should have the
// same priority, which is then the priority of the flow.
//
// The object has a clock, whose time is called virtual time. Each call of
// Charge() records one use of the resource by a flow. The cost of a use is the
// time that the resource spends on it. The virtual duration of a use is its
// cost divided by the weight of the priority. The next use by a flow starts at
// the virtual time at which the flow's last use ends, but not before now(). An
// idle flow therefore earns no credit. Source: start-time fair queueing (Goyal,
// Vin and Cheng, 1996).
//
//   const Flow next = ...;  // The waiting flow with the lowest StartOf().
//   shares.AdvanceTo(shares.StartOf(next));
//   shares.Charge(next, cost, priority);
//
// Flow is a number, an enum or a pair of them. Thread-compatible.
template <typename Flow>
class FairShares {
 public:
  // Returns the current virtual time, which never decreases.
  absl::Duration now() const { return now_; }
  void AdvanceTo(absl::Duration time) { now_ = std::max(now_, time); }

  // Returns the virtual time at which the flow's next use starts.
  absl::Duration StartOf(const Flow& flow) const {
    const auto it = served_.find(flow);
    return it == served_.end() ? now_ : std::max(now_, it->second);
  }

  // Charges the flow for one use of the resource. Returns the virtual time at
  // which the use ends.
  absl::Duration Charge(const Flow& flow, absl::Duration cost,
                        Priority priority) {
    return served_[flow] = StartOf(flow) + Weighted(cost, priority);
  }
  // Adds `more`, which may be negative, to an earlier charge of the flow. Does
  // nothing if Forget() was called for the flow.
  void Correct(const Flow& flow, absl::Duration more, Priority priority) {
    const auto it = served_.find(flow);
    if (it != served_.end()) it->second += Weighted(more, priority);
  }
  void Forget(const Flow& flow) { served_.erase(flow); }

  // Converts `cost` to virtual time.
  static absl::Duration Weighted(absl::Duration cost, Priority priority) {
    return cost / kPriorityShares[static_cast<int>(priority)];
  }

 private:
  absl::Duration now_;
  // For each flow, the virtual time at which its last charged use ends.
  absl::flat_hash_map<Flow, absl::Duration> served_;
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SHARES_FAIR_SHARES_H_
