#ifndef SFMAMBA_SERVER_BATCHING_SCHEDULE_H_
#define SFMAMBA_SERVER_BATCHING_SCHEDULE_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/batching/batch_curve.h"

namespace sfmamba::batching {

enum class BatchMode {
  // A batch leaves as soon as a device is idle, unless recent arrivals promise
  // a larger, more efficient batch within a short time.
  kLatency,
  // A batch waits for its most efficient size. It waits at most for
  // max_queue_delay and never beyond the most urgent deadline.
  kThroughput,
};

// The reason why a batch left its queue.
// - kFull: the batch has at least the most efficient size.
// - kDelay: the batch is smaller, because its tasks should not wait longer.
// - kDrain: the batch is smaller, because the queue is shutting down.
enum class BatchTrigger { kFull, kDelay, kDrain };
// Returns the name of the trigger, for example "full".
absl::string_view BatchTriggerName(BatchTrigger trigger);

struct ScheduleOptions {
  // The maximum number of images in a batch. Higher values increase throughput
  // until the device is fully used. They also increase the latency of every
  // image.
  int max_batch_size = 8;
  // The maximum time that an image waits for other images while the device is
  // idle. Higher values make larger batches under light load. If zero, a batch
  // leaves as soon as there is an image.
  absl::Duration max_queue_delay = absl::Milliseconds(2);
  BatchMode mode = BatchMode::kLatency;
};

// The waiting tasks with one batch key (image size and type), as input of
// Decide(). `tasks`, `oldest` and `gap` describe the tasks of all priority
// classes. The first task is the most urgent task of the priority class for
// which Decide() is called.
struct WaitingLine {
  const BatchCurve* curve = nullptr;  // The curve of the key, never null.
  int tasks = 0;                      // The number of tasks, at least 1.
  absl::Time oldest;                  // The arrival of the oldest task.
  // True if the line's first client is overdue, which means that the client has
  // received too little device time (see ClientTurns). No other line may then
  // go before this line.
  bool is_overdue = false;
  // The time by which the first task must be in a batch.
  absl::Time start_by;
  // The time by which the first task's batch must have ended.
  absl::Time finish_by;
  // The moving average of the time between arrivals of tasks.
  absl::Duration gap = absl::InfiniteDuration();
};

struct Decision {
  int line = -1;   // The index of the line whose batch leaves now, or -1.
  int images = 0;  // The size of the batch.
  // True if the batch is a trial, which is larger than the estimates recommend.
  bool is_trial = false;
  BatchTrigger trigger = BatchTrigger::kFull;
  // The time of the next decision if no batch leaves now and no task arrives.
  absl::Time wake = absl::InfiniteFuture();
};

// Decides which batch leaves next. May be called only while a device is idle.
// Each element of `lines` describes the waiting tasks with one batch key. All
// lines belong to the same priority class and are in the order of their turns.
//
// - Size: the batch has the largest efficient size that the waiting tasks can
//   fill. The remaining tasks then form a second batch later. Instead, all
//   waiting tasks leave now in one larger batch if three conditions hold. The
//   tasks must fit into one batch. This batch must take clearly less time than
//   the two batches together. New tasks must also arrive too slowly to fill up
//   the second batch soon.
// - Trial: a trial is a batch of up to twice the size that the rule Size gives.
//   It corrects wrong estimates, for example measurements on a busy machine.
//   The batch is a trial only if `may_try` is true, enough tasks wait, and no
//   larger batch has run recently. The first task must end in time even if the
//   trial's duration is proportional to its size.
// - Waiting: a batch waits for more tasks until it has the next efficient size.
//   It waits at most for max_queue_delay. It also stops waiting when the first
//   task would otherwise start or end too late. With kLatency, three more rules
//   apply. The batch waits at most half the duration of a batch of one image.
//   It waits only if tasks arrive fast enough to reach the next efficient size
//   in this time. If half the duration is below 0.1 ms, as for the smallest
//   models, the batch does not wait.
// - Line: by default, the first of `lines` goes first. Another line goes first
//   if its batch is clearly more efficient, the first line is likely to grow
//   meanwhile, and no line becomes late. In addition, the first line must not
//   be overdue. The first line must also have waited for at most half of its
//   allowed time. This time runs from WaitingLine::oldest to the line's
//   start_by or finish_by, whichever is earlier.
Decision Decide(const ScheduleOptions& options,
                absl::Span<const WaitingLine> lines, absl::Time now,
                bool may_try = true);

// Each task should start at least this long before its latest start time.
inline constexpr absl::Duration kScheduleMargin = absl::Milliseconds(1);

// Returns the number of images that the line's next batch would have if it left
// now.
int ChooseSize(const ScheduleOptions& options, const WaitingLine& line);

// Returns the time when a batch of the line should leave. If this time has
// passed, the batch should leave immediately.
absl::Time LeaveAt(const ScheduleOptions& options, const WaitingLine& line);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_SCHEDULE_H_
