// Tests how a batcher corrects a wrong profile.

#include <functional>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/batching/batcher.h"
#include "tests/server/batching/batch_tasks.h"
#include "tests/testing/patience.h"

namespace sfmamba::batching {
namespace {

absl::Duration TimeOf(int images) {
  return absl::Milliseconds(44 + 100 * images);
}

// Each of sixteen callers sends one image after another.
TEST(BatcherProfileTest, WhatWasMeasuredOnABusyMachineIsCorrectedInTenSeconds) {
  FakeClock clock;
  const absl::Time start = clock.Now();
  // Notified when the first images of all callers wait. The clock must not
  // advance before.
  absl::Notification waiting;
  absl::Notification full;
  const auto run = [&](Batch batch) {
    WaitFor(waiting, "all callers' first images");
    const int images = static_cast<int>(batch.tasks.size());
    clock.Advance(TimeOf(images));
    if (images == 8 && !full.HasBeenNotified()) full.Notify();
    AnswerAll(std::move(batch));
  };
  BatchOptions options = Options(8, absl::ZeroDuration());
  options.mode = BatchMode::kLatency;
  Batcher batcher(options, OneThread(), OnEachThread(run),
                  /*observer=*/nullptr, clock.clock());
  std::vector<BatchTime> times;
  for (const int images : {1, 2, 4, 8}) {
    const absl::Duration time = TimeOf(images) * (images > 1 ? 10 : 1);
    times.push_back({BatchKey(), images, time, time});
  }
  batcher.ImportProfile(times);
  const std::function<void()> call = [&] {
    BatchTask task;
    task.image.pixels = std::vector<uint8_t>(12);
    task.done = [&](absl::StatusOr<model::Result>, const BatchInfo&) {
      if (!full.HasBeenNotified()) call();
    };
    batcher.Submit(std::move(task));
  };
  for (int caller = 0; caller < 16; ++caller) call();
  waiting.Notify();
  WaitFor(full, "a batch of eight images");
  EXPECT_LT(clock.Now() - start, absl::Seconds(10));
}

}  // namespace
}  // namespace sfmamba::batching
