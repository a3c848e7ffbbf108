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
// grows with `max_batch_size`. For dense models (detectors and segmenters) the
// time grows faster, because a dense model runs the images of a batch one by
// one. The time also grows with `longest`, the duration of the longest batch so
// far.
absl::Duration HungAfter(model::VisionTask task, int max_batch_size,
                         absl::Duration longest = absl::ZeroDuration());

// Runs one loaded model with a Batcher. The executor runs the tasks of each
// batch and completes each task as soon as its image is done. Each thread of
// the batcher owns one of the model's contexts. The number of contexts is
// therefore the number of concurrent batches.
//
// Thread-safe. The destructor runs the waiting tasks, then frees the model.
class Executor : private Batcher::Observer {
 public:
  using Probe = batching::Probe;

  // The options of an executor. The base class WarmUpOptions controls the
  // warm-up of the model's contexts. WarmUpOptions::probes and
  // WarmUpOptions::profile_budget are used only for the model's first context.
  // If the warm-up fails, WaitUntilPrepared() returns the error.
  struct Options : WarmUpOptions {
    std::string name;     // The model's id.
    std::string version;  // The version's number.
    BatchOptions batch;
    // The devices, which this model shares with other models. Not null.
    std::shared_ptr<Devices> devices;
    // How long the server waits for unfinished calls when it shuts down. The
    // server then cancels the remaining calls. Admission therefore refuses a
    // request if the client's images would not be done within this timeout. A
    // request that alone takes longer than the timeout is accepted if no other
    // work delays it.
    absl::Duration drain_timeout = absl::InfiniteDuration();
    // Known durations of batches. If empty, the executor measures them.
    std::vector<BatchTime> times;
    // The executor calls this function at most once, when the model's device
    // has failed permanently. All later tasks will then fail. The function must
    // not block.
    std::function<void(const absl::Status&)> device_failed =
        [](const absl::Status&) {};
  };

  // `metrics` must outlive the executor.
  Executor(Options options, std::unique_ptr<model::VisionModel> model,
           observability::Metrics* metrics);

  // Waits until each thread has created and prepared its context. The threads
  // do this when they start. Tasks that are submitted earlier wait. Returns the
  // first error, or OK. If a thread cannot create its context, its tasks fail
  // with the same error.
  absl::Status WaitUntilPrepared() ABSL_LOCKS_EXCLUDED(prepare_mu_);

  // Reserves room for a request's images before they are decoded. `bytes` is
  // the total size of the images. The room is released when the reservation is
  // destroyed, or when the task with the reservation leaves the queue. Returns
  // RESOURCE_EXHAUSTED with one of these reasons:
  // - QUEUE_FULL with a retry delay if there is not enough room. The error is
  //   also returned if earlier work would delay the client's images beyond
  //   drain_timeout.
  // - CLIENT_QUOTA if the client's images would exceed the client's share of
  //   the queue's room. server::ClientShares computes this share from
  //   BatchOptions::client_share. If another client has sent a request
  //   recently, the client also gets only a share of the available device time.
  //   Two times limit the available time, namely the time until
  //   `request.deadline`, and drain_timeout. The time for work that was
  //   admitted earlier is subtracted from both times. The smaller result is the
  //   available time.
  // - PREDICTED_DEADLINE_MISS if the images would not be in a batch by
  //   `request.start_by`, or not be answered by `request.deadline`.
  // Concurrent requests are checked one after another, and each check counts
  // the room of the previous requests. Unknown batch durations count as zero
  // and therefore never cause a refusal. Takes microseconds, so that every
  // request can be admitted before its images are decoded.
  absl::StatusOr<Reservation> Admit(const AdmissionRequest& request,
                                    int64_t bytes)
      ABSL_LOCKS_EXCLUDED(admit_mu_);

  // Returns the limits on waiting work. The initial limits come from
  // BatchOptions.
  QueueLimits queue_limits() const { return batcher_.room().limits(); }
  // Returns the maximum number of bytes that Admit() accepts for a request of
  // the client.
  int64_t most_bytes(absl::string_view client) const {
    return batcher_.room().most_bytes(client);
  }
  void SetQueueLimits(const QueueLimits& limits) {
    batcher_.room().SetLimits(limits);
  }

  // Runs a task. Never blocks. Calls `task.done` exactly once, with the result
  // or with an error:
  // - DEADLINE_EXCEEDED (EXPIRED_IN_QUEUE)
  // - CANCELLED
  // - RESOURCE_EXHAUSTED (QUEUE_FULL or DEVICE_OOM)
  // - INTERNAL (NON_FINITE_OUTPUT or DEVICE_ERROR)
  // - INVALID_ARGUMENT if the model does not accept the image's size
  // - UNAVAILABLE while stopping (DRAINING) or after the device has failed
  //   permanently (DEVICE_FAILED)
  void Submit(BatchTask task);

  // Returns the memory pool for the pixels of images that will be submitted.
  // The memory returns to the pool after the batch of the images has run.
  image::PixelPool& pixels() { return pixels_; }

  // Returns the current estimates of batch durations.
  std::vector<BatchTime> Times() const { return batcher_.ExportProfile(); }

  // Returns the estimates and arrival rates of all batch keys.
  std::vector<KeyProfile> KeyProfiles() const { return batcher_.KeyProfiles(); }

  const Options& options() const { return options_; }
  const model::ModelConfig& config() const { return model_->config(); }
  std::string device() const { return model_->device(); }
  // Returns the number of batches that run concurrently.
  int contexts() const { return model_->contexts(); }

  // Returns false if a batch hangs at `now`, or if the device has failed
  // permanently. `now` is a time on the clock of base::SteadyNow().
  bool IsAlive(absl::Time now) const;

 private:
  void QueueChanged(server::Priority priority,
                    const WaitingTasks::Waiting& waiting) override;
  void WaitPredicted(absl::Duration wait, absl::Duration backlog,
                     int active_clients) override;
  void BatchEnded(const BatchQueue::BatchDuration& times) override;

  using Runner = absl::StatusOr<std::unique_ptr<BatchRunner>>;

  bool OnCpu() const;
  // Creates the context with index `thread` without preparing it. Only the
  // calling thread may use the context.
  Runner MakeUnprepared(int thread);
  // Creates and prepares the Run of the batcher's thread `thread`.
  Batcher::Run MakeRun(int thread) ABSL_LOCKS_EXCLUDED(prepare_mu_);
  Runner MakeRunner(int thread) ABSL_LOCKS_EXCLUDED(prepare_mu_);
  // Returns the mutex that must be locked while a context is prepared. The
  // contexts of one GPU share a mutex, and so do all CPU contexts.
  absl::Mutex& TurnToPrepare(int thread) ABSL_LOCKS_EXCLUDED(prepare_mu_);
  absl::Status WarmUpContext(int thread, BatchRunner& runner);
  // Runs the batch on the batcher's thread that owns `runner` and completes the
  // batch's tasks. The batch succeeds if the model returned a result for every
  // task.
  Batcher::Ran RunBatch(const Runner& runner, Batch batch);
  // Returns the attributes of the batch's span.
  std::vector<tracing::Attribute> SpanAttributes(const BatchInfo& info,
                                                 const Batch& batch,
                                                 int padding) const;

  // CheckLoad() and CheckShare() check a request for which room has been
  // reserved. Both return the error with which Admit() refuses the request, or
  // OK.
  absl::Status CheckLoad(const AdmissionRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(admit_mu_);
  absl::Status CheckShare(const AdmissionRequest& request,
                          const AdmissionEstimate& estimate, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(admit_mu_);

  // Returns UNAVAILABLE with the cause if the device has failed permanently.
  absl::Status CheckDevice();

  const Options options_;
  observability::Metrics& all_metrics_;
  const std::shared_ptr<observability::ModelMetrics> metrics_;
  const std::unique_ptr<model::VisionModel> model_;
  absl::once_flag device_failed_;
  BatchLimits limits_;
  // The duration of the longest batch. The value is approximate if two batches
  // end at the same time.
  std::atomic<int64_t> longest_nanos_{0};

  absl::Mutex prepare_mu_;
  // Maps each device name to the mutex that TurnToPrepare() returns for the
  // device.
  std::map<std::string, absl::Mutex> preparing_ ABSL_GUARDED_BY(prepare_mu_);
  // The number of contexts that are not prepared yet.
  int unprepared_ ABSL_GUARDED_BY(prepare_mu_);
  // The first error of a context, or OK.
  absl::Status prepared_ ABSL_GUARDED_BY(prepare_mu_);

  // Admit() locks this mutex while it reserves room for a request and checks
  // the request.
  absl::Mutex admit_mu_;
  std::string last_client_ ABSL_GUARDED_BY(admit_mu_);
  // The last time at which a request came from a different client than the
  // previous request.
  absl::Time client_changed_ ABSL_GUARDED_BY(admit_mu_) = absl::InfinitePast();

  image::PixelPool pixels_;

  Batcher batcher_;  // The last member, because its threads use the others.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_EXECUTOR_H_
