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

// The run of one model input, from its submission on.
struct InputRun {
  absl::Time submitted =
      absl::InfinitePast();  // InfinitePast(): not submitted.
  tracing::SpanId span = 0;  // The inference span, or 0 if not traced.
  batching::BatchInfo batch;

  // Stores `info`. If the task was dropped before it reached a batch, its queue
  // time ends now.
  void End(const batching::BatchInfo& info);
};

// Joins the parts of one image. Each part is a separate task in the batch
// queue. The `done` callbacks of all tasks share this object. The callback that
// releases the last reference continues with the image:
//
//   auto parts = std::make_shared<ImageParts>(count, collector, done);
//   task.done = [parts, i](auto result, const BatchInfo& batch) mutable {
//     parts->End(i, std::move(result), run);
//     parts = nullptr;  // Otherwise held until the whole batch is done.
//   };
//   parts = nullptr;  // When all parts are submitted.
//
// Thread-safe.
class ImageParts {
 public:
  // Called with OK when the collector has all results. Otherwise called with
  // the first error that is not CANCELLED, or with CANCELLED if there is no
  // other error. If a part was lost without an error, called with INTERNAL.
  // `runs` has one entry per part.
  using Done =
      absl::AnyInvocable<void(absl::Status, std::vector<InputRun> runs)>;

  // `collector` must outlive this object. The destructor calls `done`.
  ImageParts(int parts, PartCollector* collector, Done done);
  ~ImageParts();

  // Reports the end of part `i`. Must be called once for each part.
  void End(int i, absl::StatusOr<model::Result> result, InputRun run);
  // Reports one error for all parts that were not submitted.
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
