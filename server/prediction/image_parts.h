#ifndef SFMAMBA_SERVER_PREDICTION_IMAGE_PARTS_H_
#define SFMAMBA_SERVER_PREDICTION_IMAGE_PARTS_H_

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "model/result.h"
#include "server/batching/batch_task.h"
#include "server/prediction/task_handler.h"
#include "server/tracing/span.h"

namespace sfmamba::prediction {

// Records when one model input was submitted to the batch queue, and how it was
// run.
struct InputRun {
  // The time of submission, or InfinitePast() if the input was not submitted.
  absl::Time submitted = absl::InfinitePast();
  // The id of the span "inference", or 0 if the request is not traced.
  tracing::SpanId span = 0;
  batching::BatchInfo batch;

  // Stores `info`, which describes how the input was run. If the input was
  // dropped before it joined a batch, sets the queue time to the time since
  // submission.
  void End(const batching::BatchInfo& info);
};

// Collects the results of one image's parts, for example of its tiles. Each
// part is a separate task in the batch queue. The callbacks of these tasks
// share the ownership of this object. When the last callback has released its
// reference, the destructor calls `done`, which continues with the image:
//
//   auto parts = std::make_shared<ImageParts>(count, collector, done);
//   InputRun run;
//   run.submitted = base::SteadyNow();
//   task.done = [parts, i, run](auto result, const BatchInfo& batch) mutable {
//     run.End(batch);
//     parts->End(i, std::move(result), std::move(run));
//     // The callback must release its reference here, because the callback
//     // object itself may live until the whole batch is done.
//     parts = nullptr;
//   };
//   parts = nullptr;  // When all parts are submitted.
//
// Thread-safe.
class ImageParts {
 public:
  // Called when all parts have ended. The status is OK if the collector has the
  // results of all parts. If parts failed, the status is the first error that
  // is not CANCELLED, or CANCELLED if there is no other error. The status is
  // INTERNAL if a part was lost without an error. `runs` has one entry per
  // part.
  using Done =
      absl::AnyInvocable<void(absl::Status, std::vector<InputRun> runs)>;

  // `collector` must outlive this object. The destructor calls `done`.
  ImageParts(int parts, PartCollector* collector, Done done);
  ~ImageParts();

  // Records that part `i` ended with `result`. Must be called once for each
  // submitted part.
  void End(int i, absl::StatusOr<model::Result> result, InputRun run);
  // Records `status` as an error of the image. Called, for example, if the
  // remaining parts cannot be submitted. End() is then not called for these
  // parts. If there are several errors, `done` gets only one of them. See Done.
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  PartCollector& collector_;
  Done done_;
  absl::Mutex mu_;
  std::vector<InputRun> runs_ ABSL_GUARDED_BY(mu_);
  int missing_ ABSL_GUARDED_BY(mu_);
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_IMAGE_PARTS_H_
