#include "server/threads/fair_queue.h"

#include <algorithm>
#include <iterator>

namespace sfmamba::server {
namespace {

constexpr int64_t kFrontRound = -1;
// If a piece waits for memory, later pieces may overtake it until their total
// cost reaches a limit. The limit is the cost of the waiting piece, but at
// least this duration.
constexpr absl::Duration kLeastOvertaken = absl::Milliseconds(5);
// The virtual time of the queue increases by 1/kAging of the cost of each piece
// that Pop() returns, see FairQueue. With a higher kAging, large pieces wait
// longer, because more small pieces that arrive later run before them.
constexpr int kAging = 96;

}  // namespace

void FairQueue::Push(Work work) {
  work.cost = std::max(work.cost, absl::ZeroDuration());
  ++pieces_[work.group];
  const absl::Duration place =
      shares_.Charge(work.group, work.cost, work.priority);
  const Key key = KeyAt(place, work.priority, work.deadline);
  ++pushed_;
  waiting_ += work.cost;
  deadlines_.emplace(work.deadline, key);
  order_.emplace(key, Entry{std::move(work), absl::ZeroDuration()});
}

FairQueue::Key FairQueue::KeyAt(absl::Duration place, Priority priority,
                                absl::Time deadline) const {
  absl::Duration remainder;
  const int64_t round = absl::IDivDuration(place, round_, &remainder);
  return Key(round, priority, deadline, pushed_);
}

absl::Duration FairQueue::WorkBefore(absl::Duration cost, Priority priority,
                                     absl::Time deadline) const {
  const Key key = KeyAt(shares_.now() + shares_.Weighted(cost, priority),
                        priority, deadline);
  // Searches from both ends, because the new piece's position is usually near
  // one end.
  absl::Duration before, after;
  auto low = order_.begin();
  auto high = order_.end();
  while (low != high) {
    if (low->first > key) return before;
    before += (low++)->second.work.cost;
    if (low == high) break;
    if (std::prev(high)->first <= key) return waiting_ - after;
    after += (--high)->second.work.cost;
  }
  return before;
}

std::optional<Work> FairQueue::Pop(absl::Time now, int64_t free_bytes,
                                   absl::Duration longest) {
  MoveExpired(now);
  auto next = order_.begin();
  for (; next != order_.end(); ++next) {
    const Entry& entry = next->second;
    const bool takes_time = std::get<0>(next->first) != kFrontRound;
    if (takes_time && entry.work.cost > longest) continue;
    if (entry.work.bytes <= free_bytes) break;
    if (entry.overtaken >= std::max(entry.work.cost, kLeastOvertaken)) {
      return std::nullopt;
    }
  }
  if (next == order_.end()) return std::nullopt;
  const bool takes_time = std::get<0>(next->first) != kFrontRound;
  Work work = std::move(next->second.work);
  if (takes_time) {
    for (auto entry = order_.begin(); entry != next; ++entry) {
      if (entry->second.work.bytes > free_bytes) {
        entry->second.overtaken += work.cost;
      }
    }
    deadlines_.erase({work.deadline, next->first});
    shares_.AdvanceTo(shares_.now() + work.cost / kAging);
  }
  waiting_ -= work.cost;
  order_.erase(next);
  return work;
}

void FairQueue::Done(uint64_t group) {
  const auto found = pieces_.find(group);
  if (--found->second > 0) return;
  pieces_.erase(found);
  shares_.Forget(group);
}

void FairQueue::Expedite(uint64_t group) {
  for (auto entry = order_.begin(); entry != order_.end();) {
    const auto next = std::next(entry);
    if (entry->second.work.group == group) MoveToFront(entry);
    entry = next;
  }
}

void FairQueue::MoveToFront(Order::iterator entry) {
  auto node = order_.extract(entry);
  deadlines_.erase({node.mapped().work.deadline, node.key()});
  std::get<0>(node.key()) = kFrontRound;
  order_.insert(std::move(node));
}

void FairQueue::MoveExpired(absl::Time now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    MoveToFront(order_.find(deadlines_.begin()->second));
  }
}

}  // namespace sfmamba::server
