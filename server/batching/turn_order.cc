#include "server/batching/turn_order.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

namespace sfmamba::batching {

TurnOrder::Flow TurnOrder::FlowOf(const TurnWish& wish) {
  return {wish.model, wish.priority};
}

int TurnOrder::Next(const std::vector<TurnWish>& wishes) const {
  std::map<Flow, uint64_t> arrivals;  // Arrival of each flow's first wish.
  for (const TurnWish& wish : wishes) {
    uint64_t& first =
        arrivals.try_emplace(FlowOf(wish), wish.arrival).first->second;
    first = std::min(first, wish.arrival);
  }
  const auto rank = [&](const TurnWish& wish) {
    return std::make_tuple(shares_.StartOf(FlowOf(wish)), wish.priority,
                           arrivals.at(FlowOf(wish)), wish.order_by,
                           wish.arrival);
  };
  const auto first = std::min_element(
      wishes.begin(), wishes.end(),
      [&rank](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return static_cast<int>(first - wishes.begin());
}

void TurnOrder::Start(const TurnWish& wish) {
  shares_.AdvanceTo(shares_.StartOf(FlowOf(wish)));
  shares_.Charge(FlowOf(wish), wish.cost, wish.priority);
}

void TurnOrder::End(const TurnWish& wish, absl::Duration took) {
  shares_.Correct(FlowOf(wish), took - wish.cost, wish.priority);
}

void TurnOrder::Remove(int model) {
  for (const server::Priority priority : server::kPrioritiesInOrder) {
    shares_.Forget({model, priority});
  }
}

}  // namespace sfmamba::batching
