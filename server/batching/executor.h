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

// The time after which a batch that still runs counts as hung. It grows with
// the batch, most for dense models, which run their images one by one, and with
// the longest batch that has ended so far.
absl::Duration HungAfter(model::VisionTask task, int max_batch_size,
                         absl::Duration longest = absl::ZeroDuration());

// One loaded model behind its batcher: runs the tasks of each batch and
// completes each task as soon as its image is done. Each of the batcher's
// threads owns one of the model's contexts, so as many batches run concurrently
// as the model has contexts.
//
// Thread-safe. The destructor lets the waiting tasks run, then frees the model.
class Executor : private Batcher::Observer {
 public:
  using Probe = batching::Probe;

  // The first context warms up for all. An error of WarmUp is one of
  // WaitUntilPrepared().
  struct Options : WarmUpOptions {
    std::string name;     // "<id>".
    std::string version;  // "<n>".
    BatchOptions batch;
    // Where the model runs beside others; not null.
    std::shared_ptr<Devices> devices;
    // No more work is admitted than can be done in this time, because a server
    // that is stopped waits no longer.
    absl::Duration drain_timeout = absl::InfiniteDuration();
    // How long batches take, as it was known before. If empty, it is measured.
    std::vector<BatchTime> times;
    // Called at most once, when the model's device has failed for good, so that
    // no later task can succeed. Must not block.
    std::function<void(const absl::Status&)> device_failed =
        [](const absl::Status&) {};
  };

  // `metrics` outlives the executor.
  Executor(Options options, std::unique_ptr<model::VisionModel> model,
           observability::Metrics* metrics);

  // Waits until the threads have made their contexts and have prepared them for
  // this executor's batches, which they do when they start. Tasks that are
  // submitted earlier wait. Returns the first error, if any. The threads that
  // have no context then answer their tasks with it.
  absl::Status WaitUntilPrepared() ABSL_LOCKS_EXCLUDED(prepare_mu_);

  // Reserves room for a request's images, which take `bytes` together. The room
  // is held from before their decoding until the reservation is released or the
  // task that carries it is dispatched. RESOURCE_EXHAUSTED with reason
  // - QUEUE_FULL and a retry hint if there is not enough room, or if, with the
  //   request, the client's images would take longer than drain_timeout while
  //   the clients take turns;
  // - CLIENT_QUOTA if its client's images would be more than
  //   BatchOptions::client_share allows of the queue's places or, while another
  //   client asks too, of what could run before the request's deadline or
  //   within drain_timeout;
  // - PREDICTED_DEADLINE_MISS if its images would not be in a batch by
  //   `request.start_by`, or answered by `request.deadline`.
  // Of requests that come at the same time each is judged with the room of
  // those before it. Nothing is refused because of what is not known yet. Takes
  // microseconds, so that every request can be admitted before it is decoded.
  absl::StatusOr<Reservation> Admit(const AdmissionRequest& request,
                                    int64_t bytes)
      ABSL_LOCKS_EXCLUDED(admit_mu_);

  // How much may be admitted at a time: as in BatchOptions until it is set.
  QueueLimits queue_limits() const { return batcher_.room().limits(); }
  // The most bytes that Admit() ever lets in for a request of the client.
  int64_t most_bytes(absl::string_view client) const {
    return batcher_.room().most_bytes(client);
  }
  void SetQueueLimits(const QueueLimits& limits) {
    batcher_.room().SetLimits(limits);
  }

  // Never blocks. Calls `task.done` exactly once: with the result or with
  // DEADLINE_EXCEEDED (EXPIRED_IN_QUEUE), CANCELLED, RESOURCE_EXHAUSTED
  // (QUEUE_FULL, DEVICE_OOM), INTERNAL (NON_FINITE_OUTPUT, DEVICE_ERROR),
  // INVALID_ARGUMENT for a size that the model does not take, or UNAVAILABLE
  // while stopping (DRAINING) or after the device has failed for good
  // (DEVICE_FAILED).
  void Submit(BatchTask task);

  // Memory for the pixels of images that are to be submitted. It returns with
  // their batch.
  image::PixelPool& pixels() { return pixels_; }

  // What is known now of how long batches take.
  std::vector<BatchTime> Times() const { return batcher_.ExportProfile(); }

  // Returns by key what was learned of batches and what follows from it.
  std::vector<KeyProfile> KeyProfiles() const { return batcher_.KeyProfiles(); }

  const Options& options() const { return options_; }
  const model::ModelConfig& config() const { return model_->config(); }
  std::string device() const { return model_->device(); }
  // How many batches run concurrently.
  int contexts() const { return model_->contexts(); }

  // False if a batch hangs at `now`, in SteadyNow()'s time, or if the device
  // has failed for good.
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
  // Makes and prepares what the batcher's thread `thread` runs batches with.
  Batcher::Run MakeRun(int thread) ABSL_LOCKS_EXCLUDED(prepare_mu_);
  Runner MakeRunner(int thread) ABSL_LOCKS_EXCLUDED(prepare_mu_);
  // Held while a context is prepared: those of a GPU, or of all the CPU, are
  // prepared one after the other.
  absl::Mutex& TurnToPrepare(int thread) ABSL_LOCKS_EXCLUDED(prepare_mu_);
  absl::Status WarmUpContext(int thread, BatchRunner& runner);
  // Completes the tasks on the batcher's thread that owns `runner`. Returns
  // whether the model gave a result for each of them.
  Batcher::Ran RunBatch(const Runner& runner, Batch batch);
  // What the batch's span says of it.
  std::vector<tracing::Attribute> SpanAttributes(const BatchInfo& info,
                                                 const Batch& batch,
                                                 int padding) const;

  // What Admit() says of a request whose images have their room.
  absl::Status CheckLoad(const AdmissionRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(admit_mu_);
  absl::Status CheckShare(const AdmissionRequest& request,
                          const AdmissionEstimate& estimate, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(admit_mu_);

  // Returns UNAVAILABLE, naming the cause, once the device has failed for good.
  absl::Status CheckDevice();

  const Options options_;
  observability::Metrics& all_metrics_;
  const std::shared_ptr<observability::ModelMetrics> metrics_;
  const std::unique_ptr<model::VisionModel> model_;
  absl::once_flag device_failed_;
  BatchLimits limits_;
  // How long the longest batch took; about, if two end at once.
  std::atomic<int64_t> longest_nanos_{0};

  absl::Mutex prepare_mu_;
  // By device. See TurnToPrepare().
  std::map<std::string, absl::Mutex> preparing_ ABSL_GUARDED_BY(prepare_mu_);
  int unprepared_ ABSL_GUARDED_BY(prepare_mu_);         // Contexts.
  absl::Status prepared_ ABSL_GUARDED_BY(prepare_mu_);  // The first error.

  // Held from a request's reservation until it is kept or given back.
  absl::Mutex admit_mu_;
  std::string last_client_ ABSL_GUARDED_BY(admit_mu_);
  // When a request came from another client than the one before it.
  absl::Time client_changed_ ABSL_GUARDED_BY(admit_mu_) = absl::InfinitePast();

  image::PixelPool pixels_;

  Batcher batcher_;  // Last: its threads use everything above.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_EXECUTOR_H_
