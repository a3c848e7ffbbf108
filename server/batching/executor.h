#ifndef SFMAMBA_SERVER_BATCHING_EXECUTOR_H_
#define SFMAMBA_SERVER_BATCHING_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/steady_clock.h"
#include "model/config.h"
#include "model/result.h"
#include "model/vision_model.h"
#include "server/batching/batch_task.h"
#include "server/batching/batcher.h"
#include "server/batching/reservation.h"
#include "server/observability/metrics.h"

namespace sfmamba::batching {

// After how long a batch that still runs is taken for hung: a dense model runs
// its images one by one, and of many sizes.
absl::Duration HungAfter(model::VisionTask task, int max_batch_size);

// One loaded model behind its batcher: stacks the tasks of a batch, runs them
// and completes each. As many batches are on their way as the model has slots.
//
// Thread-safe. The destructor lets the waiting tasks run, then frees the model.
class Executor {
 public:
  struct Options {
    std::string name;     // "<id>".
    std::string version;  // "<n>".
    BatchOptions batch;
    // Called at most once, when the model's device has failed for good: no
    // later task can succeed. Must not block.
    std::function<void(const absl::Status&)> device_failed =
        [](const absl::Status&) {};
  };

  // `metrics` outlives the executor.
  Executor(Options options, std::unique_ptr<model::VisionModel> model,
           observability::Metrics* metrics);

  // VisionModel::Prepare() for this executor's batches, so that the first
  // request waits for nothing. Before the first Submit(). The error is the
  // model's.
  absl::Status WarmUp();

  // Room for `items` images of `bytes` together, held from before their
  // decoding until the reservation goes or the task that carries it is
  // dispatched. RESOURCE_EXHAUSTED with reason QUEUE_FULL and a retry hint when
  // the caps are reached. Cheap: no request is decoded before it holds one.
  absl::StatusOr<Reservation> Reserve(int items, int64_t bytes);

  // Never blocks; `task.done` is called exactly once: with the result, with
  // DEADLINE_EXCEEDED (EXPIRED_IN_QUEUE), CANCELLED, RESOURCE_EXHAUSTED,
  // (also DEVICE_OOM), INTERNAL (NON_FINITE_OUTPUT, DEVICE_ERROR),
  // INVALID_ARGUMENT for a size that the model does not take or, while
  // stopping, UNAVAILABLE.
  void Submit(BatchTask task);

  const Options& options() const { return options_; }
  const model::ModelConfig& config() const { return model_->config(); }
  std::string device() const { return model_->device(); }

  // False at `now`, of SteadyNow(), if a batch hangs or the device has failed
  // for good.
  bool IsAlive(absl::Time now) const;

 private:
  using Results = std::vector<absl::StatusOr<model::Result>>;

  void RunBatch(Batch batch);  // On the batcher's threads.

  // UNAVAILABLE, naming the cause, once the device has failed for good.
  absl::Status CheckDevice();
  // The model's error, or CheckDevice's. Adds the images that were computed,
  // padding included, to `padded`.
  absl::StatusOr<std::vector<model::Result>> RunModel(
      absl::Span<const model::ModelInput> inputs, int* padded);
  // One answer for each image, in order: an image that makes the model fail
  // does not take the others along.
  Results RunEach(absl::Span<const model::ModelInput> inputs, int* padded);
  // Answers images whose joint run failed with `error`: halves them, and the
  // half that fails again, until the image at fault stands alone. Where both
  // halves fail no single image is at fault, and each gets `error`. A device
  // that is out of memory often has enough for one of the halves, or both.
  Results Bisect(absl::Span<const model::ModelInput> inputs,
                 const absl::Status& error, int* padded);

  const Options options_;
  const std::shared_ptr<observability::ModelMetrics> metrics_;
  const std::unique_ptr<model::VisionModel> model_;
  absl::once_flag device_failed_;
  Batcher batcher_;  // Last: its threads use everything above.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_EXECUTOR_H_
