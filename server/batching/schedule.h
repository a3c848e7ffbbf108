#ifndef SFMAMBA_SERVER_BATCHING_SCHEDULE_H_
#define SFMAMBA_SERVER_BATCHING_SCHEDULE_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/batching/batch_curve.h"

namespace sfmamba::batching {

enum class BatchMode {
  // A batch leaves as soon as a device is free, unless recent arrivals say that
  // waiting a little makes a larger, more efficient one.
  kLatency,
  // A batch waits for its most efficient size as long as max_queue_delay and
  // its most urgent deadline allow.
  kThroughput,
};

// Why a batch left its queue: it had the size that the device computes fastest,
// its oldest task had waited long enough, or the queue is being emptied.
enum class BatchTrigger { kFull, kDelay, kDrain };
absl::string_view BatchTriggerName(BatchTrigger trigger);  // "full".

struct ScheduleOptions {
  // The largest number of images in a batch. A larger one raises the throughput
  // as long as the device is not full, and the latency of every image.
  int max_batch_size = 8;
  // How long an image may wait for others while the device is free. A longer
  // delay makes larger batches under light load; with zero, a batch leaves as
  // soon as there is an image.
  absl::Duration max_queue_delay = absl::Milliseconds(2);
  BatchMode mode = BatchMode::kLatency;  // What batches wait for.
};

// The waiting tasks of one key, as Decide() sees them. "The first" is the most
// urgent task.
struct WaitingLine {
  const BatchCurve* curve = nullptr;  // Not null.
  int tasks = 0;                      // At least 1.
  absl::Time oldest;                  // The arrival of the oldest.
  bool is_overdue = false;            // Its first client is: none may pass.
  absl::Time start_by;                // When the first must be in a batch.
  absl::Time finish_by;  // When the first one's batch must have ended.
  // Moving average of the time between arrivals.
  absl::Duration gap = absl::InfiniteDuration();
};

struct Decision {
  int line = -1;   // The line whose batch leaves now; -1 if none does.
  int images = 0;  // How many images it should have. At most the line's tasks.
  // The batch is larger than seems best, to learn how long it takes.
  bool is_trial = false;
  BatchTrigger trigger = BatchTrigger::kFull;
  // If none leaves: when to decide again unless a task arrives before.
  absl::Time wake = absl::InfiniteFuture();
};

// Decides which batch leaves next, at a time when a device is free.
//
// The size: the largest efficient one that waits, or all that wait where a
// larger batch, padded by the model, costs less than two.
//
// A trial has twice as many images. With `may_try` the batch is a trial if the
// images wait, no larger batch ran lately, and the first image would not become
// late in two batches of the best size. A wrong profile, such as one measured
// on a busy machine, would otherwise never be corrected.
//
// Waiting: until the next efficient size is there, as long as the most urgent
// task does not become late and, with kLatency, for at most half the time of
// one image and only while arrivals come fast enough to reach it. Where that is
// less than 0.1 ms, as of the smallest models, nothing is waited for.
//
// The line: the first of `lines`, which are in the order of their turns.
// Another one goes first if its batch is more efficient, the first line is
// likely to grow meanwhile, no line becomes late, and the first line is not
// overdue and has used less than half of its time.
Decision Decide(const ScheduleOptions& options,
                absl::Span<const WaitingLine> lines, absl::Time now,
                bool may_try = true);

// A task starts at least this long before it would become late.
inline constexpr absl::Duration kScheduleMargin = absl::Milliseconds(1);

// The images of the next batch of a line if it left now.
int ChooseSize(const ScheduleOptions& options, const WaitingLine& line);

// The time at which a batch of the line should leave. Not after now if it
// should leave at once.
absl::Time LeaveAt(const ScheduleOptions& options, const WaitingLine& line);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_SCHEDULE_H_
