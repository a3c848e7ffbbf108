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

// A piece of work that one thread runs without a pause.
struct Work {
  uint64_t group = 0;  // The request that the piece belongs to.
  // All pieces of a group have the same priority.
  Priority priority = Priority::kNormal;
  absl::Duration cost;  // The expected run time of the piece.
  absl::Time deadline = absl::InfiniteFuture();
  int64_t bytes = 0;  // The memory that the piece holds while running.
  absl::AnyInvocable<void()> run;
};

// Decides which piece of work runs next. Small and urgent pieces run before
// large ones. Groups that have received little service run before groups that
// have received much.
//
// The queue keeps a virtual time, which measures the work that Pop() has
// returned. When Pop() returns a piece, the virtual time increases by 1/96 of
// the cost of the piece. Each piece has a place, which is the virtual time at
// which the piece should end. The piece with the lowest place runs next. Push()
// computes the place as the sum of two durations:
// - The start is the place of the group's previous piece or the current virtual
//   time, whichever is higher.
// - The weighted cost is the cost of the piece divided by the weight of its
//   priority. The weights are 8 for HIGH, 3 for NORMAL and 1 for LOW.
//
// These rules have the following effects:
// - A small piece overtakes larger pieces of other groups.
// - No piece can be overtaken forever. New pieces overtake a waiting piece only
//   until Pop() has returned a certain amount of work. This amount is about 12
//   times (HIGH), 32 times (NORMAL) or 96 times (LOW) the cost of the waiting
//   piece. These factors are 96 divided by the weight.
// - Groups that wait for a long time share the threads' time with each other in
//   the ratio of their weights.
// - No group starves. In the worst case, new groups with small pieces arrive
//   all the time. Even then, a single waiting group gets about 1/12 (HIGH),
//   1/32 (NORMAL) or 1/96 (LOW) of the threads' time. If many groups with large
//   pieces wait, each of them gets less.
//
// The virtual time is divided into rounds of equal length. If the places of
// several pieces are in the same round, the piece with the highest priority
// runs first. If the priorities are equal, too, the piece with the earliest
// deadline runs first. Pieces whose deadline has passed run before all others,
// because they end immediately. They do not increase the virtual time.
//
// The class reads no clock and has no thread. Thread-compatible.
class FairQueue {
 public:
  // `round` is the length of a round in virtual time. For example, a round of
  // 5 ms contains at most about 15 ms of the work of one NORMAL group, because
  // the weight of NORMAL is 3. In 15 ms, a thread decodes a few ordinary
  // photographs or a small part of a large photograph.
  explicit FairQueue(absl::Duration round = absl::Milliseconds(5))
      : round_(round) {}

  void Push(Work work);

  // Removes and returns the first piece that holds at most `free_bytes` and
  // takes at most `longest`. Returns nullopt if no waiting piece fits. If a
  // piece needs more than `free_bytes`, later pieces may overtake it until
  // their total cost reaches a limit. The limit is the cost of the overtaken
  // piece, but at least 5 ms. After this, Pop() returns no later piece until
  // `free_bytes` suffices for the overtaken piece.
  std::optional<Work> Pop(absl::Time now, int64_t free_bytes,
                          absl::Duration longest = absl::InfiniteDuration());

  // Must be called when a piece from Pop() has finished. When all pieces of a
  // group have finished, the queue forgets the group. To continue a group, push
  // its next piece before this call.
  void Done(uint64_t group);

  // Moves the group's waiting pieces before all others. Intended for cancelled
  // groups, whose pieces end immediately.
  void Expedite(uint64_t group);

  // Returns the cost of the waiting work that would run before a new piece. The
  // parameters describe this piece, which would be the first of a new group.
  absl::Duration WorkBefore(absl::Duration cost, Priority priority,
                            absl::Time deadline) const;

  int size() const { return static_cast<int>(order_.size()); }

 private:
  // The position of a piece in the order. Two positions are compared by these
  // values, the most important first:
  //   1. the number of the round that contains the place. The number is the
  //      place divided by the length of a round, rounded down. It is -1 for
  //      pieces that run before all others.
  //   2. the priority
  //   3. the deadline
  //   4. the number of the piece, which makes the key unique
  using Key = std::tuple<int64_t, Priority, absl::Time, uint64_t>;
  struct Entry {
    Work work;
    // The total cost of later pieces that ran before this piece because too
    // little memory was free for this piece.
    absl::Duration overtaken;
  };
  using Order = std::map<Key, Entry>;

  Key KeyAt(absl::Duration place, Priority priority, absl::Time deadline) const;
  void MoveToFront(Order::iterator entry);
  void MoveExpired(absl::Time now);

  const absl::Duration round_;
  Order order_;
  // The deadlines of all entries except those that were moved to the front.
  std::set<std::pair<absl::Time, Key>> deadlines_;
  uint64_t pushed_ = 0;
  absl::Duration waiting_;  // The total cost of order_.

  // Stores the place (the virtual finish time) of each group's last piece. A
  // new group starts at the virtual time of the queue, which is shares_.now().
  FairShares<uint64_t> shares_;
  // The number of unfinished pieces of each group.
  absl::flat_hash_map<uint64_t, int> pieces_;
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_FAIR_QUEUE_H_
