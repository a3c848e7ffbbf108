#ifndef SFMAMBA_SERVER_SHARES_FAIR_SHARES_H_
#define SFMAMBA_SERVER_SHARES_FAIR_SHARES_H_

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/shares/priority.h"

namespace sfmamba::server {

// Tracks how much service each flow (for example a client) has received.
// Services are measured in virtual time, which is the cost of a service divided
// by the weight of its priority in kPriorityShares. If a resource always serves
// the waiting flow with the lowest StartOf(), the flows share the resource in
// the ratio of these weights. An idle flow earns no credit, because its next
// service starts no earlier than the virtual time now(). Source: start-time
// fair queueing (Goyal, Vin and Cheng, 1996).
//
//   const Flow next = ...;  // The waiting flow with the lowest StartOf().
//   shares.AdvanceTo(shares.StartOf(next));
//   shares.Charge(next, cost, priority);
//
// Flow is a number, an enum or a pair of them. Thread-compatible.
template <typename Flow>
class FairShares {
 public:
  // Returns the virtual time, which never decreases.
  absl::Duration now() const { return now_; }
  void AdvanceTo(absl::Duration time) { now_ = std::max(now_, time); }

  // Returns the virtual time at which the flow's next service starts.
  absl::Duration StartOf(const Flow& flow) const {
    const auto it = served_.find(flow);
    return it == served_.end() ? now_ : std::max(now_, it->second);
  }

  // Charges a service to the flow. Returns the virtual time at which the
  // service ends.
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
  // The virtual time at which the flow's last charged service ends.
  absl::flat_hash_map<Flow, absl::Duration> served_;
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SHARES_FAIR_SHARES_H_
