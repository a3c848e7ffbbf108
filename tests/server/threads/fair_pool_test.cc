#include "server/threads/fair_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

FairPool::Options Threads(int threads) {
  FairPool::Options options;
  options.name = "decode";
  options.threads = threads;
  return options;
}

Work Of(absl::AnyInvocable<void()> run, int64_t bytes = 0) {
  Work work;
  work.bytes = bytes;
  work.run = std::move(run);
  return work;
}

// Blocks a thread of a pool until the test releases the thread.
class Held {
 public:
  explicit Held(FairPool* pool, int64_t bytes = 0) {
    pool->Run(Of(
        [this] {
          started_.Notify();
          WaitFor(released_, "the test's leave to go on", kTestPatience);
        },
        bytes));
    WaitFor(started_, "a free thread");
  }
  ~Held() { Release(); }
  void Release() {
    if (!released_.HasBeenNotified()) released_.Notify();
  }

 private:
  absl::Notification started_;
  absl::Notification released_;
};

TEST(FairPoolTest, RunsOnNamedThreads) {
  FairPool pool(Threads(1));
  absl::Notification ran;
  char name[16] = "";
  pool.Run(Of([&] {
    pthread_getname_np(pthread_self(), name, sizeof(name));
    ran.Notify();
  }));
  WaitFor(ran, "the pool's run of a piece");
  EXPECT_STREQ(name, "decode");
}

TEST(FairPoolTest, RunsAsManyAtOnceAsItHasThreads) {
  absl::BlockingCounter started(3);
  absl::Notification go;
  FairPool pool(Threads(3));
  for (int i = 0; i < 3; ++i) {
    pool.Run(Of([&] {
      started.DecrementCount();
      WaitFor(go, "the test's leave to go on", kTestPatience);
    }));
  }
  WaitFor(started, "as many pieces as threads");
  EXPECT_EQ(pool.busy(), 3);
  EXPECT_EQ(pool.queued(), 0);
  go.Notify();
}

// A large request has 64 pictures of 20 megapixels. A small request follows.
TEST(FairPoolTest, ASmallPieceWaitsForOneLargePieceAtMost) {
  absl::Mutex mu;
  std::vector<uint64_t> order;
  {
    FairPool pool(Threads(1));
    Held held(&pool);
    const auto add = [&](uint64_t group, absl::Duration cost) {
      Work work = Of([&, group] {
        absl::MutexLock lock(&mu);
        order.push_back(group);
      });
      work.group = group;
      work.cost = cost;
      pool.Run(std::move(work));
    };
    const uint64_t large = pool.NewGroup(), small = pool.NewGroup();
    for (int i = 0; i < 64; ++i) add(large, absl::Milliseconds(160));
    add(small, absl::Milliseconds(2));
    EXPECT_EQ(pool.queued(), 65);
    held.Release();
  }
  ASSERT_EQ(order.size(), 65u);
  EXPECT_EQ(order[0], 2u);
}

Work Costing(absl::Duration cost, absl::AnyInvocable<void()> run) {
  Work work = Of(std::move(run));
  work.cost = cost;
  return work;
}

// A pool of two threads gets 64 pictures of 50 megapixels each.
TEST(FairPoolTest, WhileAllThreadsDoLongPiecesOneMoreDoesTheOthers) {
  absl::Notification go;
  std::atomic<int> running{0}, most{0}, done{0};
  {
    FairPool::Options options = Threads(2);
    options.long_piece = absl::Milliseconds(50);
    FairPool pool(options);
    absl::BlockingCounter started(2);
    for (int i = 0; i < 64; ++i) {
      pool.Run(Costing(absl::Seconds(1), [&, i] {
        most = std::max<int>(most, ++running);
        if (i < 2) started.DecrementCount();
        WaitFor(go, "the test's leave to go on", kTestPatience);
        --running;
        ++done;
      }));
    }
    WaitFor(started, "two long pieces");
    for (int i = 0; i < 3; ++i) {
      absl::Notification ran;
      pool.Run(Costing(absl::Milliseconds(50), [&] { ran.Notify(); }));
      WaitFor(ran, "a short piece beside the long ones");
    }
    EXPECT_EQ(pool.queued(), 62);
    go.Notify();
  }
  EXPECT_EQ(most, 2);
  EXPECT_EQ(done, 64);
}

TEST(FairPoolTest, ShortPiecesUseNoMoreThanTheThreads) {
  std::atomic<int> running{0}, most{0};
  {
    FairPool::Options options = Threads(2);
    options.long_piece = absl::Milliseconds(50);
    FairPool pool(options);
    absl::Notification go;
    absl::BlockingCounter started(2);
    for (int i = 0; i < 20; ++i) {
      pool.Run(Costing(options.long_piece, [&, i] {
        most = std::max<int>(most, ++running);
        if (i < 2) {
          started.DecrementCount();
          WaitFor(go, "the test's leave to go on", kTestPatience);
        }
        --running;
      }));
    }
    WaitFor(started, "as many pieces as threads");
    EXPECT_EQ(pool.queued(), 18);
    go.Notify();
  }
  EXPECT_LE(most, 2);
}

TEST(FairPoolTest, WorkWaitsForItsThreadsShareOfAllThatIsToBeDone) {
  FairPool pool(Threads(2));
  const auto wait = [&pool](absl::Duration cost) {
    return pool.Wait(cost, Priority::kNormal, absl::InfiniteFuture());
  };
  EXPECT_EQ(wait(absl::Seconds(10)), absl::Seconds(5));
  Held first(&pool), second(&pool);
  Work work = Of([] {});
  work.cost = absl::Seconds(4);
  pool.Run(std::move(work));
  EXPECT_EQ(wait(absl::Seconds(10)), absl::Seconds(7));
  EXPECT_EQ(wait(absl::Seconds(4)), absl::Seconds(4));
}

TEST(FairPoolTest, AnExpeditedGroupIsNext) {
  std::vector<int> order;
  {
    FairPool pool(Threads(1));
    Held held(&pool);
    for (int group : {1, 2}) {
      Work work = Of([&, group] { order.push_back(group); });
      work.group = group;
      work.cost = absl::Seconds(group);
      pool.Run(std::move(work));
    }
    pool.Expedite(2);
    held.Release();
  }
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
}

TEST(FairPoolTest, AGroupThatIsDoneIsForgotten) {
  std::vector<int> order;
  {
    FairPool pool(Threads(1));
    const auto run = [&pool](int group, absl::Duration cost,
                             absl::AnyInvocable<void()> run) {
      Work work = Of(std::move(run));
      work.group = group;
      work.cost = cost;
      pool.Run(std::move(work));
    };
    absl::Notification ran;
    run(1, absl::Seconds(10), [&ran] { ran.Notify(); });
    WaitFor(ran, "the first piece of the group");
    Held held(&pool);
    run(2, absl::Seconds(2), [&order] { order.push_back(2); });
    run(1, absl::Seconds(1), [&order] { order.push_back(1); });
    held.Release();
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(FairPoolTest, ItsClockSaysWhatHasExpired) {
  std::vector<int> order;
  FairPool::Options options = Threads(1);
  options.clock = [] { return absl::UnixEpoch(); };
  {
    FairPool pool(options);
    Held held(&pool);
    pool.Run(Of([&] { order.push_back(1); }));
    Work expired = Of([&] { order.push_back(2); });
    expired.cost = absl::Seconds(1);
    expired.deadline = absl::UnixEpoch();
    pool.Run(std::move(expired));
    held.Release();
  }
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
}

TEST(FairPoolTest, OthersGoOnWhileAPieceWaitsForMemory) {
  FairPool::Options options = Threads(2);
  options.memory_bytes = 100;
  FairPool pool(options);
  Held held(&pool, 60);
  std::atomic<bool> large_ran = false;
  absl::Notification large, small;
  pool.Run(Of(
      [&] {
        large_ran = true;
        large.Notify();
      },
      70));
  pool.Run(Of([&] { small.Notify(); }, 40));
  WaitFor(small, "the piece that fits");
  EXPECT_FALSE(large_ran);
  held.Release();
  WaitFor(large, "the piece that waited for memory");
}

TEST(FairPoolTest, PiecesThatWaitedForMemoryRunTogether) {
  FairPool::Options options = Threads(2);
  options.memory_bytes = 100;
  absl::Notification first, second;
  FairPool pool(options);
  Held held(&pool, 100);
  pool.Run(Of(
      [&] {
        first.Notify();
        WaitFor(second, "the other piece", kTestPatience);
      },
      50));
  pool.Run(Of(
      [&] {
        second.Notify();
        WaitFor(first, "the other piece", kTestPatience);
      },
      50));
  held.Release();
}

TEST(FairPoolTest, PiecesNeverHoldMoreThanTheMemory) {
  std::atomic<int> held = 0, most = 0;
  {
    FairPool::Options options = Threads(4);
    options.memory_bytes = 10;
    FairPool pool(options);
    for (int i = 0; i < 2000; ++i) {
      pool.Run(Of(
          [&] {
            const int now = held.fetch_add(4) + 4;
            int seen = most.load();
            while (now > seen && !most.compare_exchange_weak(seen, now)) {
            }
            held.fetch_sub(4);
          },
          4));
    }
  }
  EXPECT_GT(most, 0);
  EXPECT_LE(most, 8);
}

TEST(FairPoolTest, APieceLargerThanTheMemoryIsDoneAlone) {
  FairPool::Options options = Threads(2);
  options.memory_bytes = 100;
  FairPool pool(options);
  absl::Notification ran;
  Held held(&pool, 1);
  pool.Run(Of([&] { ran.Notify(); }, 1000));
  held.Release();
  WaitFor(ran, "the piece that is larger than the memory");
}

TEST(FairPoolTest, RunsEverythingAcceptedBeforeItGoes) {
  std::atomic<int> ran = 0;
  {
    FairPool pool(Threads(2));
    for (int i = 0; i < 100; ++i) {
      pool.Run(Of([&] {
        ++ran;
        pool.Run(Of([&] { ++ran; }));
      }));
    }
  }
  EXPECT_EQ(ran, 200);
}

TEST(FairPoolTest, SurvivesAnExceptionAndDestroysWhatThrew) {
  FairPool pool(Threads(1));
  auto captured = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = captured;
  pool.Run(Of([captured = std::move(captured)] {
    throw std::runtime_error("broken");
  }));
  absl::Notification ran;
  int busy = 0;
  pool.Run(Of([&] {
    busy = pool.busy();
    ran.Notify();
  }));
  WaitFor(ran, "the pool's run of a piece");
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(busy, 1) << "the piece that threw still counts";
}

TEST(FairPoolTest, FreesWhatAPieceCapturedOnceItRan) {
  FairPool pool(Threads(1));
  auto captured = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = captured;
  pool.Run(Of([captured = std::move(captured)] {}));
  absl::Notification ran;
  pool.Run(Of([&] { ran.Notify(); }));
  WaitFor(ran, "the pool's run of a piece");
  EXPECT_TRUE(watch.expired());
}

TEST(FairPoolTest, ManyProducersLoseNothing) {
  std::atomic<int> ran = 0;
  {
    FairPool pool(Threads(3));
    std::vector<std::thread> producers;
    for (int p = 0; p < 4; ++p) {
      producers.emplace_back([&] {
        for (int i = 0; i < 2000; ++i) {
          Work work = Of([&] { ++ran; });
          work.group = pool.NewGroup();
          pool.Run(std::move(work));
        }
      });
    }
    for (std::thread& producer : producers) Join(producer, "a producer");
  }
  EXPECT_EQ(ran, 8000);
}

// A thread is woken only if there may be work for it. If it were not woken in
// time, work would stay in the queue.
TEST(FairPoolTest, LongAndShortAndLargePiecesAreAllDone) {
  FairPool::Options options = Threads(2);
  options.long_piece = absl::Milliseconds(1);
  options.memory_bytes = 10;
  FairPool pool(options);
  for (int round = 0; round < 300; ++round) {
    constexpr int kPieces = 12;
    absl::BlockingCounter done(kPieces);
    for (int i = 0; i < kPieces; ++i) {
      const int kind = round * 7 + i * 5;
      Work work = Of([&done] { done.DecrementCount(); }, kind % 11);
      work.group = pool.NewGroup();
      work.cost = absl::Milliseconds(kind % 3);
      pool.Run(std::move(work));
    }
    WaitFor(done, "the pieces of a round");
  }
}

}  // namespace
}  // namespace sfmamba::server
