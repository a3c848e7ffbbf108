#ifndef SFMAMBA_SERVER_OBSERVABILITY_MODEL_METRICS_H_
#define SFMAMBA_SERVER_OBSERVABILITY_MODEL_METRICS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/observability/metric_names.h"
#include "server/shares/priority.h"

namespace sfmamba::observability {

// Counts the inferences of a model version, for the statistics of the Open
// Inference Protocol. Counts the requests of all transports. All numbers of one
// request or of one batch are updated together. Thread-safe.
class InferenceStatistics {
 public:
  // The number of events and their total duration.
  struct Sum {
    int64_t count = 0;
    absl::Duration time;

    void Add(absl::Duration duration) {
      ++count;
      time += duration;
    }
  };
  // The total duration of a request, and the parts of this duration.
  struct Times {
    absl::Duration total;
    absl::Duration queue;
    absl::Duration input;   // The time for decoding and resizing.
    absl::Duration infer;   // The time in the batch.
    absl::Duration output;  // The time for encoding the response.
  };
  struct Snapshot {
    int64_t images = 0;  // The number of images in successful requests.
    int64_t batches = 0;
    // The time of the last successful request.
    absl::Time last = absl::UnixEpoch();
    Sum success, fail, queue, input, infer, output;
    std::map<int, Sum> by_batch_size;
  };

  void RequestSucceeded(int images, const Times& times)
      ABSL_LOCKS_EXCLUDED(mu_);
  void RequestFailed(absl::Duration total) ABSL_LOCKS_EXCLUDED(mu_);
  void BatchRun(int images, absl::Duration time) ABSL_LOCKS_EXCLUDED(mu_);

  Snapshot Get() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  Snapshot sums_ ABSL_GUARDED_BY(mu_);
};

class Metrics;
// Defined in metric_families.h.
struct MetricFamilies;
struct ModelSeries;
struct VersionSeries;

// The metrics of one version of a model. When the last owner has released this
// object, the next scrape removes the series. Thread-safe. The methods that
// record events never wait long for a scrape.
class ModelMetrics {
 public:
  ~ModelMetrics();
  ModelMetrics(const ModelMetrics&) = delete;
  ModelMetrics& operator=(const ModelMetrics&) = delete;

  // RequestDone() is called once per request, and ItemDone() once per image.
  // Executor and Batcher do not count images, so no image is counted twice.
  // `reason` is a reason of server/errors/reasons.h, or "" if the request
  // succeeded.
  void RequestDone(Method method, absl::StatusCode code,
                   absl::string_view reason, absl::Duration duration);
  void ItemDone(ItemOutcome outcome);
  // Reports that an image was refused before it joined a batch. `queue` is the
  // name of the full queue, such as "batch". If no queue is full, `queue` is
  // empty.
  void Rejected(absl::string_view reason, absl::string_view queue);
  // Counts an image that failed because of `reason`, for example "DEVICE_OOM".
  void ItemFailed(absl::string_view reason);
  // Counts an image whose deadline passed in `stage`, for example in "queue".
  void DeadlineMissed(absl::string_view stage);
  // Records how long an image spent in `stage`. `outcome` says how the image
  // ended.
  void StageDone(Stage stage, ItemOutcome outcome, absl::Duration duration);

  // The executor calls BatchStarted() when a batch starts, and BatchRun() when
  // the batch has ended. `items` is the number of images in the batch. `padded`
  // is `items` plus the number of padding images. `size` is an image size such
  // as "224x224". `trigger` is the reason why the batch left its queue. After
  // the first 64 sizes, new sizes are counted as "other", because a detection
  // or segmentation model may have thousands of sizes.
  void BatchStarted();
  void BatchRun(absl::string_view size, absl::string_view trigger, int items,
                int padded);
  // Sets the number of images of one priority that wait for a batch, and their
  // total size in bytes. `oldest` is the time by base::SteadyNow() when the
  // oldest of these images was submitted. If no image waits, `oldest` is
  // InfiniteFuture().
  void QueueChanged(server::Priority priority, int items, int64_t bytes,
                    absl::Time oldest);

  // Sets how long a new image of normal priority would wait for a batch. Must
  // be called whenever this estimate changes. If no image waits or runs, `wait`
  // must be zero. Before the first call, the metric does not exist.
  void PredictedWait(absl::Duration wait);
  // Returns the last value that PredictedWait() set, or a negative value before
  // the first call.
  absl::Duration predicted_wait() const {
    return absl::Seconds(predicted_wait_.load(std::memory_order_relaxed));
  }
  // Returns the number of waiting images of all priorities.
  int waiting_items() const;
  // Sets the expected time that the model's devices need to process all waiting
  // images.
  void BacklogIs(absl::Duration backlog);
  absl::Duration backlog() const {
    return absl::Seconds(backlog_.load(std::memory_order_relaxed));
  }
  // Sets the number of clients whose images wait for the model's device.
  void ActiveClientsAre(int clients);
  // Reports that the batch of an image starts now. While the image waited,
  // `batches` other batches of the model ran.
  void TurnsPassed(int batches);
  // Compares the measured duration of a batch with the duration that was
  // predicted when the batch left its queue. If `predicted` is zero, there was
  // no prediction, and the batch is not counted.
  void BatchPredicted(absl::Duration measured, absl::Duration predicted);

  // Returns the statistics of this version's requests and batches.
  InferenceStatistics& statistics() { return statistics_; }

  void CaptureFailed();  // Counts a failed CUDA graph capture.

  // The repository calls StateChanged() when the state of the version changes,
  // and LoadDone() when a load ends.
  void StateChanged(ModelState state);
  void LoadDone(bool ok, absl::Duration duration);
  // Records the result of a load that began after the server's startup.
  void ReloadDone(bool ok);

  // Sets whether the model works. `alive` is false if a batch hangs or the
  // device has failed. Called periodically by the server while the model is
  // loaded.
  void AliveIs(bool alive);

 private:
  friend class Metrics;

  static constexpr int64_t kNoTime = std::numeric_limits<int64_t>::max();

  ModelMetrics(const MetricFamilies& families,
               std::shared_ptr<ModelSeries> shared, absl::string_view version);

  // Updates the gauges that all versions of the model share. Each scrape first
  // clears these gauges, and then calls this method for each version. The
  // number of waiting images, their bytes and the backlog are sums over all
  // versions. The age of the oldest waiting image, the number of clients and
  // the predicted wait are maxima over all versions. `now` is the current time
  // by base::SteadyNow().
  void ShowQueue(absl::Time now) const;

  const std::shared_ptr<ModelSeries> shared_;
  const std::unique_ptr<VersionSeries> own_;
  struct Queue {
    std::atomic<int64_t> items{0};
    std::atomic<int64_t> bytes{0};
    std::atomic<int64_t> oldest_nanos{kNoTime};  // A time of base::SteadyNow().
  };
  std::array<Queue, server::kPriorityCount> queues_;  // Indexed by priority.
  // The predicted wait in seconds. Negative if it is unknown.
  std::atomic<double> predicted_wait_{-1};
  // The backlog in seconds.
  std::atomic<double> backlog_{0};
  std::atomic<int> active_clients_{0};
  InferenceStatistics statistics_;

  absl::Mutex mu_;
  // The image sizes for which separate series exist.
  absl::flat_hash_set<std::string> sizes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_MODEL_METRICS_H_
