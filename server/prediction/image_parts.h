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

// What happened to one input of an image from its submission on.
struct InputRun {
  absl::Time submitted = absl::InfinitePast();  // InfinitePast(): never.
  tracing::SpanId span = 0;  // The inference's, if the request is traced.
  batching::BatchInfo batch;

  // Notes what happened. A task that was dropped has waited until now.
  void End(const batching::BatchInfo& info);
};

// The parts of one image, each of which is a task of its own in the batching,
// while they are on their way. The tasks' `done` share it, and the last one to
// let go of it goes on with the image:
//
//   auto parts = std::make_shared<ImageParts>(count, collector, done);
//   task.done = [parts, i](auto result, const BatchInfo& batch) mutable {
//     parts->End(i, std::move(result), run);
//     parts = nullptr;  // Not later, when the batch's other images have run.
//   };
//   parts = nullptr;  // When all parts are submitted.
//
// Thread-safe.
class ImageParts {
 public:
  // OK: the collector has all results. Otherwise the first part's error that is
  // not CANCELLED, or else CANCELLED; INTERNAL if a part was dropped on the
  // way. `runs` has one entry a part.
  using Done =
      absl::AnyInvocable<void(absl::Status, std::vector<InputRun> runs)>;

  // `collector` outlives this. `done` is called by the destructor.
  ImageParts(int parts, PartCollector* collector, Done done);
  ~ImageParts();

  // Once for each part.
  void End(int i, absl::StatusOr<model::Result> result, InputRun run);
  // Parts that were not submitted fail together.
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
