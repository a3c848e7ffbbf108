#ifndef SFMAMBA_SERVER_BATCHING_TURN_ORDER_H_
#define SFMAMBA_SERVER_BATCHING_TURN_ORDER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/shares/fair_shares.h"
#include "server/shares/priority.h"

namespace sfmamba::batching {

// A batch that waits for its turn on a device.
struct TurnWish {
  int model = 0;
  server::Priority priority = server::Priority::kNormal;
  absl::Duration cost;   // How long it will take.
  uint64_t arrival = 0;  // Decides between equal models: the lower goes first.
  // Decides between a model's wishes of one priority: the earlier goes first.
  absl::Time order_by = absl::InfiniteFuture();
};

// Decides whose turn on a device is next: fair shares of the priority classes
// of all models. While several wait, a model's class gets device time as
// server::kPriorityShares says, and models of one class get the same. One that
// waited for nothing saves nothing up, but goes before those that have waited
// for a second turn.
//
// It has no clock and no thread. Thread-compatible.
class TurnOrder {
 public:
  // Returns the index of the wish whose turn is next. `wishes` is not empty.
  int Next(const std::vector<TurnWish>& wishes) const;

  void Start(const TurnWish& wish);
  // The turn took `took` in place of the wish's cost.
  void End(const TurnWish& wish, absl::Duration took);

  // Forgets the model.
  void Remove(int model);

 private:
  using Flow = std::pair<int, server::Priority>;

  static Flow FlowOf(const TurnWish& wish);

  server::FairShares<Flow> shares_;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_TURN_ORDER_H_
