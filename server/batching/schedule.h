#ifndef SFMAMBA_SERVER_BATCHING_SCHEDULE_H_
#define SFMAMBA_SERVER_BATCHING_SCHEDULE_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/batching/batch_curve.h"

namespace sfmamba::batching {

enum class BatchMode {
  // A batch leaves as soon as a device is free. It waits only if recent
  // arrivals promise a larger, more efficient batch within a short time.
  kLatency,
  // A batch waits for its most efficient size, within the limits of
  // max_queue_delay and its most urgent deadline.
  kThroughput,
};

// Why a batch left its queue. kFull: it had the size that the device computes
// fastest. kDelay: its tasks could not wait longer. kDrain: the queue is being
// emptied.
enum class BatchTrigger { kFull, kDelay, kDrain };
absl::string_view BatchTriggerName(BatchTrigger trigger);  // "full".

struct ScheduleOptions {
  // The maximum number of images in a batch. Higher values increase throughput
  // until the device is full. They also increase the latency of every image.
  int max_batch_size = 8;
  // The maximum time that an image waits for others while the device is free.
  // Higher values make larger batches under light load. With zero, a batch
  // leaves as soon as there is an image.
  absl::Duration max_queue_delay = absl::Milliseconds(2);
  BatchMode mode = BatchMode::kLatency;  // Latency or throughput.
};

// The waiting tasks of one key, as Decide() sees them. The "first" task is the
// most urgent one.
struct WaitingLine {
  const BatchCurve* curve = nullptr;  // Not null.
  int tasks = 0;                      // At least 1.
  absl::Time oldest;                  // Arrival of the oldest task.
  // Whether its first client is overdue. Other lines must not pass it then.
  bool is_overdue = false;
  absl::Time start_by;  // When the first task must be in a batch.
  // When the batch of the first task must have ended.
  absl::Time finish_by;
  // Moving average of the time between arrivals.
  absl::Duration gap = absl::InfiniteDuration();
};

struct Decision {
  int line = -1;   // The line whose batch leaves now; -1 if none does.
  int images = 0;  // The images of the batch, at most the line's tasks.
  // Whether the batch is a trial, which is larger than the best known size.
  bool is_trial = false;
  BatchTrigger trigger = BatchTrigger::kFull;
  // When to decide again if no batch leaves now and no task arrives.
  absl::Time wake = absl::InfiniteFuture();
};

// Decides which batch leaves next, at a time when a device is free.
//
// Size: the largest efficient size that the waiting tasks can fill. All waiting
// tasks leave together if one batch of them, padded by the model, costs less
// than two batches.
//
// Trial: a batch of up to twice that size, if `may_try`. Enough images must
// wait, and no larger batch may have run recently. The first image must stay in
// time even if the trial takes in proportion to its images. Trials correct a
// wrong profile, for example one measured on a busy machine.
//
// Waiting: a batch waits for the next efficient size while its most urgent task
// stays in time. With kLatency it waits at most half the time of one image, and
// only if arrivals are fast enough. If half the time of an image is below 0.1
// ms, as for the smallest models, it does not wait.
//
// Line: the first of `lines`, which are in the order of their turns. Another
// line goes first if its batch is more efficient and the first line is likely
// to grow meanwhile. It must not make any line late. The first line must not be
// overdue and must have used less than half of its time.
Decision Decide(const ScheduleOptions& options,
                absl::Span<const WaitingLine> lines, absl::Time now,
                bool may_try = true);

// A task starts at least this long before it would become late.
inline constexpr absl::Duration kScheduleMargin = absl::Milliseconds(1);

// Returns the number of images in the line's next batch if it left now.
int ChooseSize(const ScheduleOptions& options, const WaitingLine& line);

// Returns when a batch of the line should leave. The time is not after now if
// the batch should leave at once.
absl::Time LeaveAt(const ScheduleOptions& options, const WaitingLine& line);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_SCHEDULE_H_
