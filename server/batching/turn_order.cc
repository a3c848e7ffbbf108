#include "server/batching/turn_order.h"

#include <algorithm>
#include <tuple>

namespace sfmamba::batching {
namespace {

// The device time of `cost` in virtual time.
absl::Duration Weighted(absl::Duration cost, server::Priority priority) {
  return cost / server::kPriorityShares[static_cast<int>(priority)];
}

}  // namespace

TurnOrder::Flow TurnOrder::FlowOf(const TurnWish& wish) {
  return {wish.model, wish.priority};
}

absl::Duration TurnOrder::StartTag(const TurnWish& wish) const {
  const auto it = served_.find(FlowOf(wish));
  return it == served_.end() ? now_ : std::max(now_, it->second);
}

int TurnOrder::Next(const std::vector<TurnWish>& wishes) const {
  std::map<Flow, uint64_t> arrivals;  // Of the flow's first wish.
  for (const TurnWish& wish : wishes) {
    uint64_t& first =
        arrivals.try_emplace(FlowOf(wish), wish.arrival).first->second;
    first = std::min(first, wish.arrival);
  }
  const auto rank = [&](const TurnWish& wish) {
    return std::make_tuple(StartTag(wish), wish.priority,
                           arrivals.at(FlowOf(wish)), wish.order_by,
                           wish.arrival);
  };
  const auto first = std::min_element(
      wishes.begin(), wishes.end(),
      [&rank](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return static_cast<int>(first - wishes.begin());
}

void TurnOrder::Start(const TurnWish& wish) {
  now_ = StartTag(wish);
  served_[FlowOf(wish)] = now_ + Weighted(wish.cost, wish.priority);
}

void TurnOrder::End(const TurnWish& wish, absl::Duration took) {
  const auto it = served_.find(FlowOf(wish));
  if (it == served_.end()) return;  // The model was removed.
  it->second += Weighted(took - wish.cost, wish.priority);
}

void TurnOrder::Remove(int model) {
  const auto first = served_.lower_bound({model, server::Priority::kHigh});
  served_.erase(first, served_.upper_bound({model, server::Priority::kLow}));
}

}  // namespace sfmamba::batching
