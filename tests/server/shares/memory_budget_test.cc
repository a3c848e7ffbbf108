#include "server/shares/memory_budget.h"

#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/errors/error.h"

namespace sfmamba::server {
namespace {

constexpr int64_t kMiB = 1 << 20;

// The budget is 160 MiB. The transport has 40 MiB of it, including 20 MiB for
// messages. Decoding has 40 MiB. All other uses share 80 MiB, of which 10 MiB
// are reserved for small amounts.
class MemoryBudgetTest : public testing::Test {
 protected:
  MemoryHold Take(MemoryUse use, int64_t bytes) {
    absl::StatusOr<MemoryHold> hold = budget_.Take(use, bytes);
    EXPECT_TRUE(hold.ok()) << hold.status();
    return hold.ok() ? *std::move(hold) : MemoryHold();
  }
  bool Fits(MemoryUse use, int64_t bytes) {
    return budget_.Take(use, bytes).ok();
  }

  MemoryBudget budget_{160 * kMiB, 40 * kMiB};
};

TEST_F(MemoryBudgetTest, IsDividedIntoParts) {
  EXPECT_EQ(budget_.bytes(), 160 * kMiB);
  EXPECT_EQ(budget_.transport_bytes(), 40 * kMiB);
  EXPECT_EQ(budget_.most_of_request(), 70 * kMiB);
}

TEST_F(MemoryBudgetTest, MessagesInputsAndAnswersShareTheirPart) {
  const MemoryHold message = Take(MemoryUse::kMessage, 20 * kMiB);
  const MemoryHold input = Take(MemoryUse::kInput, 40 * kMiB);
  EXPECT_FALSE(Fits(MemoryUse::kAnswer, 10 * kMiB + 1));
  EXPECT_TRUE(Fits(MemoryUse::kAnswer, 10 * kMiB));
  EXPECT_EQ(budget_.held(MemoryUse::kMessage), 20 * kMiB);
  EXPECT_EQ(budget_.held(MemoryUse::kInput), 40 * kMiB);
  EXPECT_EQ(budget_.held(MemoryUse::kAnswer), 0);
}

TEST_F(MemoryBudgetTest, ARefusalSaysWhatIsFullAndWhenToTryAgain) {
  const MemoryHold answer = Take(MemoryUse::kAnswer, 60 * kMiB);
  const auto refused = budget_.Take(MemoryUse::kInput, 20 * kMiB);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorDetail(refused.status()).reason, "QUEUE_FULL");
  EXPECT_EQ(refused.status().message(),
            "requests hold 62914560 of at most 73400320 bytes of memory; there "
            "is room for 10485760, not for 20971520");
  EXPECT_EQ(GetMetadata("queue", refused.status()), "memory");
  EXPECT_EQ(GetErrorDetail(refused.status()).retry_after, kRetryAfter);
}

TEST_F(MemoryBudgetTest, NothingIsSoLargeThatItOverflows) {
  const MemoryHold message = Take(MemoryUse::kMessage, 1);
  EXPECT_FALSE(Fits(MemoryUse::kInput, std::numeric_limits<int64_t>::max()));
}

TEST_F(MemoryBudgetTest, AnEighthIsLeftForTheSmall) {
  const MemoryHold large = Take(MemoryUse::kInput, 70 * kMiB);
  EXPECT_FALSE(Fits(MemoryUse::kInput, kMiB + 1));
  std::vector<MemoryHold> small;
  for (int i = 0; i < 10; ++i) small.push_back(Take(MemoryUse::kInput, kMiB));
  EXPECT_FALSE(Fits(MemoryUse::kInput, 1));
}

TEST_F(MemoryBudgetTest, MessagesLeaveTheTransportRoomToReadOn) {
  EXPECT_EQ(budget_.most_of_message(), 20 * kMiB);
  const MemoryHold large = Take(MemoryUse::kMessage, 20 * kMiB);
  EXPECT_FALSE(Fits(MemoryUse::kMessage, kMiB + 1));
  const MemoryHold first = Take(MemoryUse::kMessage, kMiB);
  const MemoryHold second = Take(MemoryUse::kMessage, kMiB);
  EXPECT_FALSE(Fits(MemoryUse::kMessage, kMiB)) << "2.5 MiB are for the small";
  EXPECT_TRUE(Fits(MemoryUse::kInput, 40 * kMiB)) << "the others have room";
}

TEST_F(MemoryBudgetTest, DecodingHasAPartOfItsOwn) {
  const MemoryHold answer = Take(MemoryUse::kAnswer, 70 * kMiB);
  const MemoryHold decode = Take(MemoryUse::kDecode, 40 * kMiB);
  EXPECT_EQ(budget_.held(MemoryUse::kDecode), 40 * kMiB);
  EXPECT_TRUE(Fits(MemoryUse::kInput, kMiB)) << "decoding takes none of it";
}

TEST_F(MemoryBudgetTest, AHoldGivesBackOnceItGoes) {
  {
    const MemoryHold held = Take(MemoryUse::kAnswer, 70 * kMiB);
    EXPECT_FALSE(Fits(MemoryUse::kAnswer, 2 * kMiB));
  }
  EXPECT_TRUE(Fits(MemoryUse::kAnswer, 70 * kMiB));
  EXPECT_EQ(budget_.held(MemoryUse::kAnswer), 0);
}

TEST_F(MemoryBudgetTest, PartsGoTheirOwnWay) {
  MemoryHold whole = Take(MemoryUse::kInput, 30);
  MemoryHold part = whole.Split(12);
  EXPECT_EQ(whole->bytes, 18);
  EXPECT_EQ(part->bytes, 12);
  whole.Release();
  EXPECT_EQ(budget_.held(MemoryUse::kInput), 12);
  part.Release();
  EXPECT_EQ(budget_.held(MemoryUse::kInput), 0);
}

TEST_F(MemoryBudgetTest, AHoldGrowsWhileThereIsRoomAndAlwaysShrinks) {
  MemoryHold answer = Take(MemoryUse::kAnswer, 10 * kMiB);
  const MemoryHold other = Take(MemoryUse::kAnswer, 40 * kMiB);
  EXPECT_TRUE(answer.Resize(30 * kMiB).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(answer.Resize(32 * kMiB)));
  EXPECT_EQ(answer->bytes, 30 * kMiB);
  EXPECT_TRUE(answer.Resize(1).ok());
  EXPECT_EQ(budget_.held(MemoryUse::kAnswer), 40 * kMiB + 1);
  EXPECT_TRUE(answer.Resize(0).ok());
  EXPECT_TRUE(answer.Resize(2).ok()) << "an empty hold may grow again";
}

TEST_F(MemoryBudgetTest, ManyThreadsNeverTakeMoreThanThereIs) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int k = 0; k < 2000; ++k) {
        const auto held = budget_.Take(MemoryUse::kInput, 30 * kMiB);
        EXPECT_LE(budget_.held(MemoryUse::kInput), 70 * kMiB);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget_.held(MemoryUse::kInput), 0);
}

}  // namespace
}  // namespace sfmamba::server
