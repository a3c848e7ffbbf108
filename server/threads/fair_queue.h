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
  Priority priority = Priority::kNormal;  // Equal for all pieces of a group.
  absl::Duration cost;                    // The expected time on one thread.
  absl::Time deadline = absl::InfiniteFuture();
  int64_t bytes = 0;  // The memory that the piece holds while it runs.
  absl::AnyInvocable<void()> run;
};

// Decides which piece of work runs next. Small and urgent pieces run before
// large ones. Groups that have received little service run before groups that
// have received much.
//
// Each piece has a virtual finish time, called its place. The piece with the
// lowest place runs next. A place is a start value plus the piece's weighted
// cost. The weighted cost is the cost divided by the weight of the priority,
// which is 8, 3 or 1. The start value is the place of the group's previous
// piece or the virtual time of the queue, whichever is higher. The virtual time
// increases by 1/96 of the cost of each piece that Pop() returns. This has the
// following effects:
// - A small piece overtakes larger pieces of other groups.
// - After Pop() has returned work of 32 times the cost of a NORMAL piece, newly
//   pushed pieces no longer overtake this piece.
// - Groups that wait together share the threads in the ratio 8:3:1.
// - No group starves. A group of priority HIGH gets at least 1/12 of the
//   threads' time, NORMAL 1/32 and LOW 1/96.
//
// Places are rounded down to multiples of a length called a round. Among pieces
// of the same round, the priority and then the deadline decide. Expired pieces
// run before all others, because they take no time.
//
// The class has no clock and no thread. Thread-compatible.
class FairQueue {
 public:
  // `round` is the length of a round, as cost divided by weight. In one round,
  // a group of priority NORMAL receives work of three times this cost, because
  // its weight is 3. The default fits a few ordinary photographs, or a small
  // part of a large photograph.
  explicit FairQueue(absl::Duration round = absl::Milliseconds(5))
      : round_(round) {}

  void Push(Work work);

  // Removes and returns the next piece that holds at most `free_bytes` and
  // takes at most `longest`. Returns nullopt if no waiting piece fits. Only a
  // limited amount of work may overtake a piece that needs more memory. The
  // limit is the cost of this piece, but at least 5 ms. Beyond the limit, Pop()
  // returns nullopt until enough memory is free for the piece.
  std::optional<Work> Pop(absl::Time now, int64_t free_bytes,
                          absl::Duration longest = absl::InfiniteDuration());

  // Must be called when a piece from Pop() has finished. When all pieces of a
  // group have finished, the queue forgets the group. To continue a group, push
  // its next piece before this call.
  void Done(uint64_t group);

  // Moves the group's waiting pieces before all others. Intended for cancelled
  // groups, whose pieces take no time.
  void Expedite(uint64_t group);

  // Returns the cost of the waiting work that would run before a new piece of a
  // new group.
  absl::Duration WorkBefore(absl::Duration cost, Priority priority,
                            absl::Time deadline) const;

  int size() const { return static_cast<int>(order_.size()); }

 private:
  // The order of the pieces:
  //   1. the round of the place, see FairQueue
  //   2. the priority
  //   3. the deadline
  //   4. the number of the piece, which makes the key unique
  using Key = std::tuple<int64_t, Priority, absl::Time, uint64_t>;
  struct Entry {
    Work work;
    // The cost of the work that has run before the piece although the piece was
    // first. This happens if too little memory is free for the piece.
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

  // The place of each group's last piece. A new group starts at the virtual
  // time now().
  FairShares<uint64_t> shares_;
  // The number of unfinished pieces of each group.
  absl::flat_hash_map<uint64_t, int> pieces_;
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_FAIR_QUEUE_H_
