#include "model/engine/block_cache.h"

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sfmamba::engine {
namespace {

constexpr int64_t kMegabyte = 1 << 20;
constexpr absl::Duration kKeep = absl::Seconds(10);
const absl::Time kStart = absl::UnixEpoch();

TEST(BlockCacheTest, TakesAgainWhatWasReturned) {
  BlockCache cache(kKeep);
  void* const block = cache.Take(kMegabyte, 0, kStart);
  ASSERT_NE(block, nullptr);
  std::memset(block, 1, kMegabyte);
  EXPECT_EQ(cache.kept_bytes(), 0);
  EXPECT_TRUE(cache.Return(block, kStart));
  EXPECT_EQ(cache.kept_bytes(), kMegabyte);
  EXPECT_EQ(cache.Take(kMegabyte, 0, kStart), block);
  EXPECT_EQ(cache.kept_bytes(), 0);
  EXPECT_TRUE(cache.Return(block, kStart));
}

TEST(BlockCacheTest, KnowsItsOwnBlocks) {
  BlockCache cache(kKeep);
  int other;
  EXPECT_FALSE(cache.Return(&other, kStart));
  void* const block = cache.Take(kMegabyte, 0, kStart);
  EXPECT_TRUE(cache.Return(block, kStart));
  EXPECT_FALSE(cache.Return(block, kStart));
}

TEST(BlockCacheTest, HandsEachBlockToOneAtATime) {
  BlockCache cache(kKeep);
  void* const first = cache.Take(kMegabyte, 0, kStart);
  void* const second = cache.Take(kMegabyte, 0, kStart);
  EXPECT_NE(first, second);
  EXPECT_TRUE(cache.Return(first, kStart));
  EXPECT_TRUE(cache.Return(second, kStart));
  EXPECT_EQ(cache.kept_bytes(), 2 * kMegabyte);
}

TEST(BlockCacheTest, SharesABlockAmongSizesUpToTwice) {
  BlockCache cache(kKeep);
  void* const block = cache.Take(kMegabyte, 0, kStart);
  EXPECT_TRUE(cache.Return(block, kStart));
  for (const int64_t bytes : {kMegabyte - 1, kMegabyte / 2}) {
    EXPECT_EQ(cache.Take(bytes, 0, kStart), block);
    EXPECT_TRUE(cache.Return(block, kStart));
  }
  void* const smaller = cache.Take(3 * kMegabyte / 8, 0, kStart);
  EXPECT_NE(smaller, block);
  void* const larger = cache.Take(kMegabyte + 1, 0, kStart);
  EXPECT_NE(larger, block);
  std::memset(larger, 1, kMegabyte + 1);
  EXPECT_TRUE(cache.Return(smaller, kStart));
  EXPECT_TRUE(cache.Return(larger, kStart));
}

// A tensor gets a block that is much larger than needed only if the used memory
// stays within its peak. Without this rule, a small tensor could take the block
// of a large one. The large tensor would then need a new block, and the memory
// would grow again and again.
TEST(BlockCacheTest, LeavesALargeBlockToOthersAtThePeak) {
  BlockCache cache(kKeep);
  void* const large = cache.Take(3 * kMegabyte, 0, kStart);
  void* const used = cache.Take(4 * kMegabyte, 0, kStart);
  EXPECT_TRUE(cache.Return(large, kStart));
  void* const small = cache.Take(2 * kMegabyte, 0, kStart);
  EXPECT_EQ(small, large) << "4 and 3 MB were taken before";
  EXPECT_TRUE(cache.Return(small, kStart));
  void* const other = cache.Take(kMegabyte / 2, 0, kStart);
  void* const exact = cache.Take(2 * kMegabyte, 0, kStart);
  EXPECT_NE(exact, large) << "4, 3 and 0.5 MB would be a new peak";
  EXPECT_TRUE(cache.Return(exact, kStart));
  EXPECT_TRUE(cache.Return(other, kStart));
  EXPECT_TRUE(cache.Return(used, kStart));
}

TEST(BlockCacheTest, TakesTheSmallestThatFits) {
  BlockCache cache(kKeep);
  void* const large = cache.Take(9 * kMegabyte, 0, kStart);
  void* const small = cache.Take(8 * kMegabyte, 0, kStart);
  EXPECT_TRUE(cache.Return(small, kStart));
  EXPECT_TRUE(cache.Return(large, kStart));
  EXPECT_EQ(cache.Take(8 * kMegabyte, 0, kStart), small);
  EXPECT_EQ(cache.Take(8 * kMegabyte, 0, kStart), large);
  EXPECT_TRUE(cache.Return(small, kStart));
  EXPECT_TRUE(cache.Return(large, kStart));
}

TEST(BlockCacheTest, TakesABlockOnItsOwnNodeOnly) {
  BlockCache cache(kKeep);
  // The cache keeps at most 5/4 of the peak of used memory. This use of 8 MB
  // raises the limit to 10 MB, so that both blocks below can stay cached.
  EXPECT_TRUE(cache.Return(cache.Take(8 * kMegabyte, 0, kStart), kStart));
  void* const block = cache.Take(kMegabyte, 0, kStart);
  EXPECT_TRUE(cache.Return(block, kStart));
  void* const other = cache.Take(kMegabyte, 1, kStart);
  EXPECT_NE(other, block);
  EXPECT_TRUE(cache.Return(other, kStart));
  EXPECT_EQ(cache.Take(kMegabyte, 1, kStart), other);
  EXPECT_TRUE(cache.Return(other, kStart));
}

TEST(BlockCacheTest, GivesBackWhatNobodyTakesForLong) {
  BlockCache cache(kKeep);
  void* const first = cache.Take(kMegabyte, 0, kStart);
  void* const second = cache.Take(kMegabyte, 0, kStart);
  EXPECT_TRUE(cache.Return(first, kStart));
  EXPECT_TRUE(cache.Return(second, kStart + kKeep / 2));
  cache.Release(kStart + kKeep - absl::Nanoseconds(1));
  EXPECT_EQ(cache.kept_bytes(), 2 * kMegabyte);
  cache.Release(kStart + kKeep);
  EXPECT_EQ(cache.kept_bytes(), kMegabyte);
  cache.Release(kStart + 2 * kKeep);
  EXPECT_EQ(cache.kept_bytes(), 0);
}

TEST(BlockCacheTest, GivesBackWhenOthersAreTakenToo) {
  BlockCache cache(kKeep);
  void* const idle = cache.Take(kMegabyte, 0, kStart);
  EXPECT_TRUE(cache.Return(idle, kStart));
  void* const other = cache.Take(4 * kMegabyte, 0, kStart + kKeep);
  EXPECT_EQ(cache.kept_bytes(), 0);
  EXPECT_TRUE(cache.Return(other, kStart + kKeep));
}

// In this test, each block has another size. This is the case if, for example,
// every picture has another size.
TEST(BlockCacheTest, EverNewSizesTakeLittleMoreThanTheLargest) {
  BlockCache cache(kKeep);
  for (int64_t bytes = 64 * kMegabyte; bytes >= kMegabyte;
       bytes -= kMegabyte / 2) {
    void* const block = cache.Take(bytes, 0, kStart);
    EXPECT_LE(bytes + cache.kept_bytes(), 80 * kMegabyte);
    EXPECT_TRUE(cache.Return(block, kStart));
    EXPECT_LE(cache.kept_bytes(), 80 * kMegabyte);
  }
}

TEST(BlockCacheTest, TheOldestMakeRoomForOthers) {
  BlockCache cache(kKeep);
  void* const oldest = cache.Take(4 * kMegabyte, 0, kStart);
  EXPECT_TRUE(cache.Return(oldest, kStart));
  void* const other = cache.Take(2 * kMegabyte, 0, kStart);
  EXPECT_EQ(cache.kept_bytes(), 0) << "4 MB and 2 MB are more than 5";
  EXPECT_TRUE(cache.Return(other, kStart));
  EXPECT_EQ(cache.Take(2 * kMegabyte, 0, kStart), other);
  EXPECT_TRUE(cache.Return(other, kStart));
}

TEST(BlockCacheTest, SaysIfThereIsNoMemory) {
  BlockCache cache(kKeep);
  EXPECT_EQ(cache.Take(int64_t{1} << 60, 0, kStart), nullptr);
  EXPECT_TRUE(cache.Return(cache.Take(kMegabyte, 0, kStart), kStart));
  EXPECT_TRUE(cache.Return(cache.Take(4 * kMegabyte, 0, kStart), kStart));
  EXPECT_EQ(cache.kept_bytes(), 5 * kMegabyte);
  EXPECT_TRUE(cache.Return(cache.Take(3 * kMegabyte / 2, 0, kStart), kStart));
  EXPECT_EQ(cache.kept_bytes(), 3 * kMegabyte / 2)
      << "the refused size must not count";
}

TEST(BlockCacheTest, ServesManyThreads) {
  BlockCache cache(kKeep);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 200; ++i) {
        const int64_t bytes = kMegabyte + i % 3 * kMegabyte;
        auto* block = static_cast<uint8_t*>(cache.Take(bytes, 0, kStart));
        block[0] = block[bytes - 1] = static_cast<uint8_t>(t);
        std::this_thread::yield();
        EXPECT_EQ(block[0], t);
        EXPECT_EQ(block[bytes - 1], t);
        EXPECT_TRUE(cache.Return(block, kStart));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache.kept_bytes(), 4 * (1 + 2 + 3) * kMegabyte);
}

}  // namespace
}  // namespace sfmamba::engine
