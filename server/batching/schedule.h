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
// - kFull: enough tasks waited for a batch of the most efficient size.
// - kDelay: the batch's tasks could not wait longer.
// - kDrain: the queue is shutting down.
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
  // True if the batch is a trial, which is larger than the best known size.
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
//   fill. All waiting tasks leave together if one larger batch takes less time
//   than two smaller batches and the second batch would not fill up soon.
// - Trial: a trial is a batch of up to twice the efficient size. It corrects
//   wrong estimates, for example measurements on a busy machine. The batch is a
//   trial only if `may_try` is true, enough tasks wait, and no larger batch has
//   run recently. The first task must stay in time even if the trial's duration
//   is proportional to its size.
// - Waiting: a batch waits for the next efficient size while its first task
//   stays in time, but at most for max_queue_delay. With kLatency, the batch
//   waits at most half the time of one image, and only if tasks arrive fast
//   enough. If half the time of an image is below 0.1 ms, as for the smallest
//   models, the batch does not wait.
// - Line: by default, the first of `lines` goes first. A later line goes first
//   if its batch is more efficient, the first line is likely to grow meanwhile,
//   and no line becomes late. In addition, the first line must not be overdue,
//   and at least half of its time must be left. The time of a line runs from
//   WaitingLine::oldest to start_by or finish_by, whichever is earlier.
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
