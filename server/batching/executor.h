#ifndef SFMAMBA_SERVER_BATCHING_EXECUTOR_H_
#define SFMAMBA_SERVER_BATCHING_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "model/config.h"
#include "model/vision_model.h"
#include "server/batching/batch_queue.h"
#include "server/batching/batch_runner.h"
#include "server/batching/batch_task.h"
#include "server/batching/batcher.h"
#include "server/batching/device_turns.h"
#include "server/batching/reservation.h"
#include "server/batching/warm_up.h"
#include "server/image/pixel_pool.h"
#include "server/observability/metrics.h"

namespace sfmamba::batching {

// Returns the time after which a running batch is considered hung. The time
// grows with the batch size, and most for dense models, which run images one by
// one. It also grows with the longest batch that has ended so far.
absl::Duration HungAfter(model::VisionTask task, int max_batch_size,
                         absl::Duration longest = absl::ZeroDuration());

// Runs one loaded model behind a batcher. It runs the tasks of each batch and
// completes each task as soon as its image is done. Each of the batcher's
// threads owns one of the model's contexts. The number of contexts is therefore
// the number of concurrent batches.
//
// Thread-safe. The destructor lets the waiting tasks run, then frees the model.
class Executor : private Batcher::Observer {
 public:
  using Probe = batching::Probe;

  // The first context warms up for all contexts. WaitUntilPrepared() returns
  // the errors of the warm-up.
  struct Options : WarmUpOptions {
    std::string name;     // The model's id.
    std::string version;  // The version's number.
    BatchOptions batch;
    // The devices, which the model shares with other models. Not null.
    std::shared_ptr<Devices> devices;
    // Admission refuses work that would take longer than this, because a server
    // that is shutting down waits no longer.
    absl::Duration drain_timeout = absl::InfiniteDuration();
    // Known times of batches. If empty, the executor measures them.
    std::vector<BatchTime> times;
    // Called at most once, when the model's device has failed permanently and
    // no later task can succeed. Must not block.
    std::function<void(const absl::Status&)> device_failed =
        [](const absl::Status&) {};
  };

  // `metrics` must outlive the executor.
  Executor(Options options, std::unique_ptr<model::VisionModel> model,
           observability::Metrics* metrics);

  // Waits until every thread has made and prepared its context. Each thread
  // does this when it starts. Tasks that are submitted earlier wait. Returns
  // the first error, if any. A thread without a context answers its tasks with
  // the error.
  absl::Status WaitUntilPrepared() ABSL_LOCKS_EXCLUDED(prepare_mu_);

  // Reserves room for a request's images, which take `bytes` together. The room
  // is reserved before the images are decoded. It is released with the
  // reservation, or when the task that carries the reservation is dispatched.
  // RESOURCE_EXHAUSTED with reason
  // - QUEUE_FULL and a retry hint if there is not enough room. The same applies
  //   if the client's images, with this request, would take longer than
  //   drain_timeout while clients take turns;
  // - CLIENT_QUOTA if the client's images would exceed
  //   BatchOptions::client_share of the queue's places. If another client has
  //   asked recently, the limit also covers the time before the request's
  //   deadline and drain_timeout;
  // - PREDICTED_DEADLINE_MISS if the images would not be in a batch by
  //   `request.start_by`, or answered by `request.deadline`.
  // Concurrent requests are checked one after another, and each counts the room
  // of the requests before it. Missing estimates never refuse a request. Takes
  // microseconds, so that every request can be admitted before it is decoded.
  absl::StatusOr<Reservation> Admit(const AdmissionRequest& request,
                                    int64_t bytes)
      ABSL_LOCKS_EXCLUDED(admit_mu_);

  // The limits on waiting work. They start as in BatchOptions.
  QueueLimits queue_limits() const { return batcher_.room().limits(); }
  // The maximum bytes that Admit() accepts for a request of the client.
  int64_t most_bytes(absl::string_view client) const {
    return batcher_.room().most_bytes(client);
  }
  void SetQueueLimits(const QueueLimits& limits) {
    batcher_.room().SetLimits(limits);
  }

  // Never blocks. Calls `task.done` exactly once, with the result or with an
  // error: DEADLINE_EXCEEDED (EXPIRED_IN_QUEUE), CANCELLED, RESOURCE_EXHAUSTED
  // (QUEUE_FULL, DEVICE_OOM), INTERNAL (NON_FINITE_OUTPUT, DEVICE_ERROR),
  // INVALID_ARGUMENT for a size that the model does not take, or UNAVAILABLE
  // while stopping (DRAINING) or after the device has failed permanently
  // (DEVICE_FAILED).
  void Submit(BatchTask task);

  // Memory for the pixels of images that will be submitted. The memory returns
  // to the pool after their batch.
  image::PixelPool& pixels() { return pixels_; }

  // Returns the current estimates of how long batches take.
  std::vector<BatchTime> Times() const { return batcher_.ExportProfile(); }

  // Returns the estimates and arrival rates of each key.
  std::vector<KeyProfile> KeyProfiles() const { return batcher_.KeyProfiles(); }

  const Options& options() const { return options_; }
  const model::ModelConfig& config() const { return model_->config(); }
  std::string device() const { return model_->device(); }
  // How many batches run concurrently.
  int contexts() const { return model_->contexts(); }

  // False if a batch hangs at `now`, in SteadyNow()'s time, or if the device
  // has failed permanently.
  bool IsAlive(absl::Time now) const;

 private:
  void QueueChanged(server::Priority priority,
                    const WaitingTasks::Waiting& waiting) override;
  void WaitPredicted(absl::Duration wait, absl::Duration backlog,
                     int active_clients) override;
  void BatchEnded(const BatchQueue::BatchDuration& times) override;

  using Runner = absl::StatusOr<std::unique_ptr<BatchRunner>>;

  bool OnCpu() const;
  // Makes a context for the calling thread.
  Runner MakeUnprepared(int thread);
  // Makes and prepares the Run of the batcher's thread `thread`.
  Batcher::Run MakeRun(int thread) ABSL_LOCKS_EXCLUDED(prepare_mu_);
  Runner MakeRunner(int thread) ABSL_LOCKS_EXCLUDED(prepare_mu_);
  // Returns the mutex to hold while a context is prepared. The contexts of one
  // GPU are prepared one after another, and so are all contexts of the CPU.
  absl::Mutex& TurnToPrepare(int thread) ABSL_LOCKS_EXCLUDED(prepare_mu_);
  absl::Status WarmUpContext(int thread, BatchRunner& runner);
  // Runs the batch on the batcher's thread that owns `runner` and completes its
  // tasks. It succeeds if the model gave a result for every task.
  Batcher::Ran RunBatch(const Runner& runner, Batch batch);
  // Returns the attributes of the batch's span.
  std::vector<tracing::Attribute> SpanAttributes(const BatchInfo& info,
                                                 const Batch& batch,
                                                 int padding) const;

  // The checks of Admit() after it has reserved room for the images.
  absl::Status CheckLoad(const AdmissionRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(admit_mu_);
  absl::Status CheckShare(const AdmissionRequest& request,
                          const AdmissionEstimate& estimate, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(admit_mu_);

  // Returns UNAVAILABLE with the cause once the device has failed permanently.
  absl::Status CheckDevice();

  const Options options_;
  observability::Metrics& all_metrics_;
  const std::shared_ptr<observability::ModelMetrics> metrics_;
  const std::unique_ptr<model::VisionModel> model_;
  absl::once_flag device_failed_;
  BatchLimits limits_;
  // The duration of the longest batch. Approximate if two batches end at once.
  std::atomic<int64_t> longest_nanos_{0};

  absl::Mutex prepare_mu_;
  // By device. See TurnToPrepare().
  std::map<std::string, absl::Mutex> preparing_ ABSL_GUARDED_BY(prepare_mu_);
  int unprepared_ ABSL_GUARDED_BY(prepare_mu_);         // Contexts to prepare.
  absl::Status prepared_ ABSL_GUARDED_BY(prepare_mu_);  // The first error.

  // Held from a request's reservation until the request is admitted or refused.
  absl::Mutex admit_mu_;
  std::string last_client_ ABSL_GUARDED_BY(admit_mu_);
  // When a request last came from a different client than the request before.
  absl::Time client_changed_ ABSL_GUARDED_BY(admit_mu_) = absl::InfinitePast();

  image::PixelPool pixels_;

  Batcher batcher_;  // Declared last. Its threads use all above.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_EXECUTOR_H_
