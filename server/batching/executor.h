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

// The time after which a batch that still runs counts as hung. It grows with
// the batch for dense models, which run their images one by one.
absl::Duration HungAfter(model::VisionTask task, int max_batch_size);

// One loaded model behind its batcher: runs the tasks of each batch and
// completes them. It runs as many batches concurrently as the model has slots.
//
// Thread-safe. The destructor lets the waiting tasks run, then frees the model.
class Executor {
 public:
  struct Options {
    std::string name;     // "<id>".
    std::string version;  // "<n>".
    BatchOptions batch;
    // Called at most once, when the model's device has failed for good, so that
    // no later task can succeed. Must not block.
    std::function<void(const absl::Status&)> device_failed =
        [](const absl::Status&) {};
  };

  // `metrics` outlives the executor.
  Executor(Options options, std::unique_ptr<model::VisionModel> model,
           observability::Metrics* metrics);

  // Calls VisionModel::Prepare() for this executor's batches, so that the first
  // request is as fast as the later ones. Must be called before the first
  // Submit(). Returns the model's error.
  absl::Status WarmUp();

  // Reserves room for `items` images of `bytes` together. The room is held from
  // before their decoding until the reservation is released or the task that
  // carries it is dispatched. RESOURCE_EXHAUSTED with reason QUEUE_FULL and a
  // retry hint if there is not enough room. This is cheap, so that every
  // request can hold a reservation before it is decoded.
  absl::StatusOr<Reservation> Reserve(int items, int64_t bytes);

  // Never blocks. Calls `task.done` exactly once: with the result or with
  // DEADLINE_EXCEEDED (EXPIRED_IN_QUEUE), CANCELLED, RESOURCE_EXHAUSTED
  // (QUEUE_FULL, DEVICE_OOM), INTERNAL (NON_FINITE_OUTPUT, DEVICE_ERROR),
  // INVALID_ARGUMENT for a size that the model does not take, or UNAVAILABLE
  // while stopping.
  void Submit(BatchTask task);

  const Options& options() const { return options_; }
  const model::ModelConfig& config() const { return model_->config(); }
  std::string device() const { return model_->device(); }

  // False if a batch hangs at `now`, in SteadyNow()'s time, or if the device
  // has failed for good.
  bool IsAlive(absl::Time now) const;

 private:
  using Results = std::vector<absl::StatusOr<model::Result>>;

  void RunBatch(Batch batch);  // On the batcher's threads.

  // Returns UNAVAILABLE, naming the cause, once the device has failed for good.
  absl::Status CheckDevice();
  // Runs the model. Returns its error, or CheckDevice's. Adds the number of
  // computed images, including padding, to `padded`.
  absl::StatusOr<std::vector<model::Result>> RunModel(
      absl::Span<const model::ModelInput> inputs, int* padded);
  // Returns one answer for each image, in order. An image that makes the model
  // fail does not make the others fail.
  Results RunEach(absl::Span<const model::ModelInput> inputs, int* padded);
  // Answers images whose common run failed with `error`. It runs the halves,
  // and the halves of a half that fails again, until the image at fault is
  // alone. If both halves fail, no single image is at fault, and every image
  // gets `error`. A device that is out of memory often has enough for one or
  // both halves.
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
