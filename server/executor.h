#ifndef SFMAMBA_SERVER_EXECUTOR_H_
#define SFMAMBA_SERVER_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "model/config.h"
#include "model/result.h"
#include "model/vision_model.h"
#include "server/batcher.h"
#include "server/metrics.h"
#include "server/reservation.h"
#include "server/task.h"

namespace sfmamba {

// One loaded model behind its batcher: stacks the tasks of a batch, runs them
// and completes each.
//
// Thread-safe. The destructor lets the waiting tasks run, then frees the model.
class Executor {
 public:
  struct Options {
    std::string name;                 // "<id>".
    std::string version;              // "<n>".
    std::vector<std::string> labels;  // One for each class.
    BatchOptions batch;
  };

  // `metrics` outlives the executor.
  Executor(Options options, std::unique_ptr<VisionModel> model,
           Metrics* metrics);

  // Runs a batch of each size 1, 2, 4, ... max of zeros, or a dense model on
  // one image of the short side and 4:3, so that the first request finds all
  // allocated. The error is the model's.
  absl::Status WarmUp() ABSL_LOCKS_EXCLUDED(model_mu_);

  // Room for `items` images of `bytes` together, held from before their
  // decoding until the reservation goes or the task that carries it is
  // dispatched. RESOURCE_EXHAUSTED with reason QUEUE_FULL and a retry hint when
  // the caps are reached. Cheap: no request is decoded before it holds one.
  absl::StatusOr<Reservation> Reserve(int items, int64_t bytes);

  // Never blocks; `task.done` is called exactly once: with the result, with
  // DEADLINE_EXCEEDED (EXPIRED_IN_QUEUE), CANCELLED, RESOURCE_EXHAUSTED,
  // INTERNAL (NON_FINITE_OUTPUT, DEVICE_ERROR), INVALID_ARGUMENT for a size
  // that the model does not take or, while stopping, UNAVAILABLE.
  void Submit(Task task);

  const Options& options() const { return options_; }
  const ModelConfig& config() const { return model_->config(); }
  std::string device() const { return model_->device(); }

  // Not long ago unless a batch hangs; see Batcher::LastProgress.
  absl::Time LastProgress() const { return batcher_.LastProgress(); }

 private:
  using Results = std::vector<absl::StatusOr<Result>>;

  void RunBatch(Batch batch);  // On the batcher's thread.

  absl::StatusOr<std::vector<Result>> RunModel(
      absl::Span<const ModelInput> inputs)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(model_mu_);
  // One answer for each image, in order: an image that makes the model fail
  // does not take the others along.
  Results RunEach(absl::Span<const ModelInput> inputs)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(model_mu_);
  // Answers images whose joint run failed with `error`: halves them, and the
  // half that fails again, until the image at fault stands alone. Where both
  // halves fail no single image is at fault, and each gets `error`.
  Results Bisect(absl::Span<const ModelInput> inputs, const absl::Status& error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(model_mu_);

  const Options options_;
  const std::shared_ptr<ModelMetrics> metrics_;
  absl::Mutex model_mu_;  // Held while the model runs.
  const std::unique_ptr<VisionModel> model_;
  Batcher batcher_;  // Last: its threads use everything above.
};

}  // namespace sfmamba

#endif  // SFMAMBA_SERVER_EXECUTOR_H_
