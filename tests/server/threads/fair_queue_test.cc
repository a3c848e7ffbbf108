#include "server/threads/fair_queue.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
constexpr int64_t kMuch = std::numeric_limits<int64_t>::max();
constexpr absl::Duration kSmall = absl::Milliseconds(2);
constexpr absl::Duration kLarge = absl::Milliseconds(200);

Work MakeWork(uint64_t group, absl::Duration cost,
              Priority priority = Priority::kNormal) {
  Work work;
  work.group = group;
  work.cost = cost;
  work.priority = priority;
  return work;
}

Work Due(uint64_t group, absl::Duration cost, absl::Time deadline) {
  Work work = MakeWork(group, cost);
  work.deadline = deadline;
  return work;
}

Work Holding(uint64_t group, absl::Duration cost, int64_t bytes) {
  Work work = MakeWork(group, cost);
  work.bytes = bytes;
  return work;
}

void PushMany(FairQueue* queue, int count, const Work& like) {
  for (int i = 0; i < count; ++i) {
    queue->Push(MakeWork(like.group, like.cost, like.priority));
  }
}

// Pops the next work and finishes it at once. Returns its group, or 0 if there
// is none.
uint64_t PopGroup(FairQueue* queue, int64_t free_bytes = kMuch,
                  absl::Time now = kStart) {
  const std::optional<Work> work = queue->Pop(now, free_bytes);
  if (!work.has_value()) return 0;
  queue->Done(work->group);
  return work->group;
}

TEST(FairQueueTest, LeavesOutWhatTakesTooLong) {
  FairQueue queue;
  queue.Push(MakeWork(1, kLarge));
  EXPECT_FALSE(queue.Pop(kStart, kMuch, kSmall).has_value());
  queue.Push(MakeWork(2, kSmall));
  EXPECT_EQ(queue.Pop(kStart, kMuch, kSmall)->group, 2u);
  // Expired work is assumed to take no time.
  queue.Push(Due(3, kLarge, kStart));
  EXPECT_EQ(queue.Pop(kStart, kMuch, kSmall)->group, 3u);
  EXPECT_FALSE(queue.Pop(kStart, kMuch, kSmall).has_value());
  EXPECT_EQ(PopGroup(&queue), 1u);
}

TEST(FairQueueTest, TellsTheWorkBeforeAnyDeadline) {
  constexpr int kPieces = 9;
  FairQueue queue(absl::Seconds(100));
  const auto deadline = [](int i) { return kStart + absl::Seconds(10 * i); };
  for (int i = 0; i < kPieces; ++i) {
    const int mixed = i * 4 % kPieces;
    queue.Push(Due(i, (mixed + 1) * kSmall, deadline(mixed)));
  }
  for (int popped = 0; popped <= kPieces; ++popped) {
    absl::Duration before;
    for (int i = popped; i <= kPieces; ++i) {
      EXPECT_EQ(queue.WorkBefore(kSmall, Priority::kNormal,
                                 deadline(i) - absl::Seconds(5)),
                before)
          << popped << " " << i;
      before += (i + 1) * kSmall;
    }
    if (popped < kPieces) {
      EXPECT_EQ(queue.Pop(kStart - absl::Seconds(1), kMuch)->deadline,
                deadline(popped));
    }
  }
}

TEST(FairQueueTest, TellsTheWorkBeforeANewcomer) {
  FairQueue queue;
  const absl::Time never = absl::InfiniteFuture();
  EXPECT_EQ(queue.WorkBefore(kSmall, Priority::kNormal, never),
            absl::ZeroDuration());
  PushMany(&queue, 3, MakeWork(1, kLarge));
  EXPECT_EQ(queue.WorkBefore(kSmall, Priority::kNormal, never),
            absl::ZeroDuration())
      << "it is done before the large ones";
  EXPECT_EQ(queue.WorkBefore(2 * kLarge, Priority::kNormal, never), 2 * kLarge);
  EXPECT_EQ(queue.WorkBefore(100 * kLarge, Priority::kLow, never), 3 * kLarge);
}

TEST(FairQueueTest, HasNothingToStartWith) {
  FairQueue queue;
  EXPECT_EQ(queue.size(), 0);
  EXPECT_FALSE(queue.Pop(kStart, kMuch).has_value());
}

// A small request's work goes before all remaining work of a large request, no
// matter how much of the large request is done.
TEST(FairQueueTest, ASmallPieceIsBeforeAllThatAreLeftOfSixtyFourLargeOnes) {
  for (int served = 0; served < 64; ++served) {
    FairQueue queue;
    PushMany(&queue, 64, MakeWork(1, kLarge));
    for (int i = 0; i < served; ++i) ASSERT_EQ(PopGroup(&queue), 1u);
    queue.Push(MakeWork(2, kSmall));
    EXPECT_EQ(PopGroup(&queue), 2u) << served << " have been served";
  }
}

TEST(FairQueueTest, ASmallPieceIsBeforeLargeOnesOfManyRequests) {
  FairQueue queue;
  for (int group = 1; group <= 64; ++group) {
    queue.Push(MakeWork(group, kLarge));
  }
  for (int i = 0; i < 30; ++i) PopGroup(&queue);
  queue.Push(MakeWork(100, kSmall));
  EXPECT_EQ(PopGroup(&queue), 100u);
}

// The next step of an answer is pushed when the step before is almost done.
TEST(FairQueueTest, ASmallPieceIsBeforeTheNextOneOfAChain) {
  FairQueue queue;
  queue.Push(MakeWork(1, kLarge));
  for (int i = 0; i < 20; ++i) {
    queue.Push(MakeWork(10 + i, kSmall));
    EXPECT_EQ(PopGroup(&queue), 10u + i);
    ASSERT_EQ(queue.Pop(kStart, kMuch)->group, 1u);
    queue.Push(MakeWork(1, kLarge));
    queue.Done(1);
  }
}

// Work that is queued step by step has no advantage over work that is queued
// all at once.
TEST(FairQueueTest, AChainThatHasHadMuchIsBehindTheManyPiecesOfAnother) {
  FairQueue queue;
  queue.Push(MakeWork(1, kLarge));
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(queue.Pop(kStart, kMuch)->group, 1u);
    queue.Push(MakeWork(1, kLarge));
    queue.Done(1);
  }
  PushMany(&queue, 10, MakeWork(2, kLarge));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(PopGroup(&queue), 2u);
}

TEST(FairQueueTest, AGroupIsForgottenWhenItIsDone) {
  FairQueue queue;
  PushMany(&queue, 20, MakeWork(1, kLarge));
  while (PopGroup(&queue) != 0) {
  }
  queue.Push(MakeWork(2, 2 * kLarge));
  queue.Push(MakeWork(1, kLarge));
  EXPECT_EQ(PopGroup(&queue), 1u);
}

TEST(FairQueueTest, TheImagesOfARequestDoNotStandBeforeAnothers) {
  FairQueue queue;
  PushMany(&queue, 64, MakeWork(1, kLarge));
  PushMany(&queue, 4, MakeWork(2, kLarge));
  int first = 0, second = 0;
  while (second < 4) ++(PopGroup(&queue) == 1 ? first : second);
  EXPECT_LE(first, 4);
}

// Returns the total time of new HIGH work that runs before one large piece of
// work of `priority`.
absl::Duration WaitOf(Priority priority) {
  FairQueue queue;
  queue.Push(MakeWork(1, kLarge, priority));
  absl::Duration waited;
  for (uint64_t group = 2; waited < 1000 * kLarge; ++group) {
    queue.Push(MakeWork(group, kSmall, Priority::kHigh));
    if (PopGroup(&queue) == 1) break;
    waited += kSmall;
  }
  return waited;
}

TEST(FairQueueTest, ALargePieceIsOvertakenForSoLongAndNotForEver) {
  EXPECT_NEAR(WaitOf(Priority::kHigh) / kLarge, 12, 2.5);
  EXPECT_NEAR(WaitOf(Priority::kNormal) / kLarge, 32, 2.5);
  EXPECT_NEAR(WaitOf(Priority::kLow) / kLarge, 96, 2.5);
}

TEST(FairQueueTest, PrioritiesShareTheTimeByTheirWeights) {
  FairQueue queue;
  PushMany(&queue, 120, MakeWork(1, kLarge, Priority::kHigh));
  PushMany(&queue, 120, MakeWork(2, kLarge, Priority::kNormal));
  PushMany(&queue, 120, MakeWork(3, kLarge, Priority::kLow));
  std::array<int, 4> served = {};
  for (int i = 0; i < 120; ++i) ++served[PopGroup(&queue)];
  EXPECT_NEAR(served[1], 80, 2);
  EXPECT_NEAR(served[2], 30, 2);
  EXPECT_NEAR(served[3], 10, 2);
}

TEST(FairQueueTest, OfSmallPiecesTheUrgentAreFirst) {
  FairQueue queue;
  queue.Push(Due(1, kSmall, kStart + absl::Seconds(30)));
  queue.Push(Due(2, kSmall, kStart + absl::Seconds(1)));
  queue.Push(Due(3, 2 * kSmall, kStart + absl::Seconds(2)));
  queue.Push(MakeWork(4, kSmall, Priority::kHigh));
  queue.Push(MakeWork(5, kSmall));
  for (const uint64_t group : {4, 2, 3, 1, 5}) {
    EXPECT_EQ(PopGroup(&queue), group);
  }
}

// If a deadline moved large pieces ahead of small ones, a client could overtake
// all others by setting short deadlines.
TEST(FairQueueTest, ADeadlineDoesNotCarryLargePiecesPastSmallOnes) {
  FairQueue queue;
  for (int i = 0; i < 64; ++i) {
    queue.Push(Due(1, kLarge, kStart + absl::Seconds(1)));
  }
  queue.Push(MakeWork(2, kSmall));
  EXPECT_EQ(PopGroup(&queue), 2u);
}

TEST(FairQueueTest, EqualPiecesAreServedInTheirOrder) {
  FairQueue queue;
  for (uint64_t group = 1; group <= 5; ++group) {
    queue.Push(MakeWork(group, kSmall));
  }
  for (uint64_t group = 1; group <= 5; ++group) {
    EXPECT_EQ(PopGroup(&queue), group);
  }
}

TEST(FairQueueTest, WhatHasExpiredGoesFirstAndTakesNoShare) {
  FairQueue queue;
  for (int i = 0; i < 8; ++i) {
    queue.Push(Due(1, kLarge, kStart + absl::Seconds(1)));
  }
  queue.Push(MakeWork(2, kSmall));
  const absl::Time late = kStart + absl::Seconds(1);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(PopGroup(&queue, kMuch, late), 1u);
  EXPECT_EQ(PopGroup(&queue, kMuch, late), 2u);
  EXPECT_EQ(queue.size(), 0);
}

TEST(FairQueueTest, AnExpeditedGroupGoesFirst) {
  FairQueue queue;
  PushMany(&queue, 3, MakeWork(1, kLarge));
  queue.Push(MakeWork(2, kSmall));
  queue.Expedite(1);
  queue.Expedite(1);
  for (const uint64_t group : {1, 1, 1, 2, 0}) {
    EXPECT_EQ(PopGroup(&queue), group);
  }
}

TEST(FairQueueTest, WhatDoesNotFitIsOvertaken) {
  FairQueue queue;
  queue.Push(Holding(1, kSmall, 100));
  queue.Push(Holding(2, kLarge, 40));
  EXPECT_EQ(PopGroup(&queue, 50), 2u);
  EXPECT_EQ(PopGroup(&queue, 50), 0u);
  EXPECT_EQ(PopGroup(&queue, 100), 1u);
}

TEST(FairQueueTest, ASmallPieceThatDoesNotFitIsOvertakenBy5Milliseconds) {
  FairQueue queue;
  queue.Push(Holding(1, absl::Milliseconds(1), 100));
  for (uint64_t group = 2; group <= 7; ++group) {
    queue.Push(Holding(group, absl::Milliseconds(1), 10));
  }
  for (const uint64_t group : {2, 3, 4, 5, 6, 0}) {
    EXPECT_EQ(PopGroup(&queue, 50), group);
  }
}

// Work that does not fit into the free memory must not starve. Later work that
// fits may overtake it only until the cost of the later work reaches a limit.
TEST(FairQueueTest, WhatDoesNotFitIsNotStarved) {
  for (const absl::Duration other : {kLarge / 4, 3 * kLarge}) {
    FairQueue queue;
    queue.Push(Holding(1, kLarge, 100));
    absl::Duration overtaken;
    for (uint64_t group = 2;; ++group) {
      queue.Push(Holding(group, other, 10));
      if (PopGroup(&queue, 50) == 0) break;
      overtaken += other;
      ASSERT_LT(overtaken, 40 * kLarge) << "memory is never left free for it";
    }
    EXPECT_EQ(PopGroup(&queue, 100), 1u);
    EXPECT_NE(PopGroup(&queue, 50), 0u) << "the others go on after it";
  }
}

TEST(FairQueueTest, WhatDoesNotFitIsOvertakenByAsMuchAsItCosts) {
  FairQueue queue;
  for (const uint64_t group : {1, 2, 3}) {
    queue.Push(Holding(group, kLarge, group == 1 ? 100 : 10));
  }
  EXPECT_EQ(PopGroup(&queue, 50), 2u);
  EXPECT_EQ(PopGroup(&queue, 50), 0u);
  EXPECT_EQ(PopGroup(&queue, 100), 1u);
}

// Work that waits for memory must not delay the work before it in the queue's
// order.
TEST(FairQueueTest, WhatWaitsForMemoryHoldsUpOnlyWhatIsBehindIt) {
  FairQueue queue;
  queue.Push(Holding(1, kLarge, 100));
  queue.Push(Holding(2, 2 * kLarge, 10));
  queue.Push(Holding(3, 2 * kLarge, 10));
  EXPECT_EQ(PopGroup(&queue, 50), 2u);
  EXPECT_EQ(PopGroup(&queue, 50), 0u);
  queue.Push(MakeWork(4, kSmall));
  EXPECT_EQ(PopGroup(&queue, 50), 4u);
  EXPECT_EQ(PopGroup(&queue, 50), 0u);
}

TEST(FairQueueTest, APieceThatCostsNothingIsServedToo) {
  FairQueue queue;
  queue.Push(MakeWork(1, absl::ZeroDuration()));
  queue.Push(MakeWork(2, -absl::Seconds(1)));
  EXPECT_EQ(PopGroup(&queue), 1u);
  EXPECT_EQ(PopGroup(&queue), 2u);
}

}  // namespace
}  // namespace sfmamba::server
