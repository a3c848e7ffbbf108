#ifndef SFMAMBA_SERVER_THREADS_FAIR_QUEUE_H_
#define SFMAMBA_SERVER_THREADS_FAIR_QUEUE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "server/shares/fair_shares.h"
#include "server/shares/priority.h"

namespace sfmamba::server {

// A piece of work that one thread does without a pause.
struct Work {
  uint64_t group = 0;                     // The request that it belongs to.
  Priority priority = Priority::kNormal;  // A group has one priority.
  absl::Duration cost;  // How long one thread is expected to work on it.
  absl::Time deadline = absl::InfiniteFuture();
  int64_t bytes = 0;  // Memory that it holds while it runs.
  absl::AnyInvocable<void()> run;
};

// Decides which piece of work is next: the small and the urgent before the
// large ones, and those of a group that has had little before those of one that
// has had much.
//
// A group's pieces stand in line one behind the other; a piece's place is its
// own cost and that of those before it, divided by the weight of its priority:
// 8, 3 or 1. Places are counted from where newcomers start, which moves on by
// 1/96 of the work that is handed out. So a small piece waits for no larger one
// of another group that came in the last 32 times its cost; waiting groups
// share the threads 8:3:1; and whatever comes, a group of priority HIGH gets at
// least 1/12 of the threads' time, NORMAL 1/32 and LOW 1/96: nothing starves.
//
// Of pieces with about the same place (in the same round) the one of the higher
// priority is first, then the one whose deadline is sooner. Expired pieces come
// before all others, because they take no time.
//
// It has no clock and no thread. Thread-compatible.
class FairQueue {
 public:
  // The length of a round, in places: a group of priority NORMAL has three
  // times as much work in it. By default that is a few ordinary photographs, a
  // small part of a large one.
  explicit FairQueue(absl::Duration round = absl::Milliseconds(5))
      : round_(round) {}

  void Push(Work work);

  // Removes and returns the next piece of those that hold at most `free_bytes`
  // and take at most `longest`. None if nothing waits or if what waits must
  // wait for memory: a piece that does not fit is overtaken by as much work as
  // it is itself, at least 5 ms; then memory is left free for it.
  std::optional<Work> Pop(absl::Time now, int64_t free_bytes,
                          absl::Duration longest = absl::InfiniteDuration());

  // To be called when a piece that Pop() returned is done. A group is forgotten
  // once all its pieces are done. To continue it, push before this.
  void Done(uint64_t group);

  // The group's pieces come before all others from now on. For groups that have
  // been cancelled, whose pieces take no time.
  void Expedite(uint64_t group);

  // The cost of what would be done before a new piece of a new group.
  absl::Duration WorkBefore(absl::Duration cost, Priority priority,
                            absl::Time deadline) const;

  int size() const { return static_cast<int>(order_.size()); }

 private:
  // The round that a piece's place is in, and what decides within it: priority,
  // deadline. The last is the number of the piece, so that keys differ.
  using Key = std::tuple<int64_t, Priority, absl::Time, uint64_t>;
  struct Entry {
    Work work;
    absl::Duration overtaken;  // Work handed out since it did not fit.
  };
  using Order = std::map<Key, Entry>;

  Key KeyAt(absl::Duration place, Priority priority, absl::Time deadline) const;
  void MoveToFront(Order::iterator entry);
  void MoveExpired(absl::Time now);

  const absl::Duration round_;
  Order order_;
  // Deadlines of the entries that are not at the front.
  std::set<std::pair<absl::Time, Key>> deadlines_;
  uint64_t pushed_ = 0;
  absl::Duration waiting_;  // The cost of all of order_.

  // By group: the place of its last piece. Newcomers start at now().
  FairShares<uint64_t> shares_;
  absl::flat_hash_map<uint64_t, int> pieces_;  // By group: that are not done.
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_FAIR_QUEUE_H_
