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
  return {wish.member, wish.priority};
}

absl::Duration TurnOrder::StartTag(const TurnWish& wish) const {
  const auto it = served_.find(FlowOf(wish));
  return it == served_.end() ? now_ : std::max(now_, it->second);
}

int TurnOrder::Next(const std::vector<TurnWish>& wishes) const {
  const auto first = std::min_element(
      wishes.begin(), wishes.end(),
      [this](const TurnWish& a, const TurnWish& b) {
        return std::make_tuple(StartTag(a), a.priority, a.arrival) <
               std::make_tuple(StartTag(b), b.priority, b.arrival);
      });
  return static_cast<int>(first - wishes.begin());
}

void TurnOrder::Start(const TurnWish& wish) {
  now_ = StartTag(wish);
  served_[FlowOf(wish)] = now_ + Weighted(wish.cost, wish.priority);
}

void TurnOrder::End(const TurnWish& wish, absl::Duration took) {
  const auto it = served_.find(FlowOf(wish));
  if (it == served_.end()) return;  // The member was removed.
  it->second += Weighted(took - wish.cost, wish.priority);
}

void TurnOrder::Remove(int member) {
  const auto first = served_.lower_bound({member, server::Priority::kHigh});
  served_.erase(first, served_.upper_bound({member, server::Priority::kLow}));
}

}  // namespace sfmamba::batching
