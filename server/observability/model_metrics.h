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

// What a version has answered since the start, for the statistics of the Open
// Inference Protocol. Requests of all transports count. All that belongs to one
// request, or to one batch, is counted at once. Thread-safe.
class InferenceStatistics {
 public:
  // How often something happened, and how long that took in all.
  struct Sum {
    int64_t count = 0;
    absl::Duration time;

    void Add(absl::Duration duration) {
      ++count;
      time += duration;
    }
  };
  // Where a request's time went.
  struct Times {
    absl::Duration total;
    absl::Duration queue;
    absl::Duration input;   // Decoding and resizing.
    absl::Duration infer;   // In the batch.
    absl::Duration output;  // Encoding the answer.
  };
  struct Snapshot {
    int64_t images = 0;  // Images in successful requests.
    int64_t batches = 0;
    absl::Time last = absl::UnixEpoch();  // The last request's success.
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
// In metric_families.h.
struct MetricFamilies;
struct ModelSeries;
struct VersionSeries;

// The series of one version of a model. They are removed by the first scrape
// after the last owner has released this. Thread-safe; the verbs take no lock
// that a scrape holds for long.
class ModelMetrics {
 public:
  ~ModelMetrics();
  ModelMetrics(const ModelMetrics&) = delete;
  ModelMetrics& operator=(const ModelMetrics&) = delete;

  // Called by the prediction, once per request and once per image, so that the
  // counts equal the client's. Executor and Batcher do not count items.
  // Reasons are those of server/errors/reasons.h; "" for OK.
  void RequestDone(Method method, absl::StatusCode code,
                   absl::string_view reason, absl::Duration duration);
  void ItemDone(ItemOutcome outcome);
  // An image was refused before a batch took it. `queue` is the one that was
  // full, such as "batch"; empty if the reason is another.
  void Rejected(absl::string_view reason, absl::string_view queue);
  void ItemFailed(absl::string_view reason);     // For example "DEVICE_OOM".
  void DeadlineMissed(absl::string_view stage);  // For example "queue".
  // Records the time that an image spent in `stage`, which ended with
  // `outcome`.
  void StageDone(Stage stage, ItemOutcome outcome, absl::Duration duration);

  // Called by the executor when a batch begins, and when a batch of `items`
  // images, padded to `padded`, has ended. `size` is such as "224x224",
  // `trigger` why the batch left its queue. Sizes after the first 64 are
  // counted as "other", because a dense model may have thousands.
  void BatchStarted();
  void BatchRun(absl::string_view size, absl::string_view trigger, int items,
                int padded);
  // Sets what waits now of a priority. `oldest` is the submission of the oldest
  // image, in SteadyNow()'s time, or InfiniteFuture() if no image waits.
  void QueueChanged(server::Priority priority, int items, int64_t bytes,
                    absl::Time oldest);

  // Sets what an image of normal priority would wait for its batch if it came
  // now. Until the first call the model has no such series. Called whenever the
  // prediction changes, with zero once nothing waits and nothing runs.
  void PredictedWait(absl::Duration wait);
  // The same, read; negative before the first call.
  absl::Duration predicted_wait() const {
    return absl::Seconds(predicted_wait_.load(std::memory_order_relaxed));
  }
  // The images of all priorities that wait now.
  int waiting_items() const;
  // Sets how long the model's devices will take for all that waits, as far as
  // is known.
  void BacklogIs(absl::Duration backlog);
  absl::Duration backlog() const {
    return absl::Seconds(backlog_.load(std::memory_order_relaxed));
  }
  // Sets how many clients have images that wait on the model's device.
  void ActiveClientsAre(int clients);
  // An image's batch starts, and this many of the model's ran while it waited.
  void TurnsPassed(int batches);
  // Compares how long a batch took with what had been predicted when it left
  // its queue. A prediction of zero, which means none, is not counted.
  void BatchPredicted(absl::Duration measured, absl::Duration predicted);

  // Requests and batches of this version.
  InferenceStatistics& statistics() { return statistics_; }

  void CaptureFailed();  // A CUDA graph could not be recorded.

  // Called by the repository.
  void StateChanged(ModelState state);
  void LoadDone(bool ok, absl::Duration duration);
  // A load after the start has ended.
  void ReloadDone(bool ok);

  // Called by the server, now and then, while the model is loaded.
  void AliveIs(bool alive);

 private:
  friend class Metrics;

  static constexpr int64_t kNoTime = std::numeric_limits<int64_t>::max();

  ModelMetrics(const MetricFamilies& families,
               std::shared_ptr<ModelSeries> shared, absl::string_view version);

  // Adds what waits to the gauges of all versions, at the time `now`.
  void ShowQueue(absl::Time now) const;

  const std::shared_ptr<ModelSeries> shared_;
  const std::unique_ptr<VersionSeries> own_;
  struct Queue {
    std::atomic<int64_t> items{0};
    std::atomic<int64_t> bytes{0};
    std::atomic<int64_t> oldest_nanos{kNoTime};  // In SteadyNow()'s time.
  };
  std::array<Queue, server::kPriorityCount> queues_;  // By priority.
  std::atomic<double> predicted_wait_{-1};  // Seconds; negative: unknown.
  std::atomic<double> backlog_{0};          // Seconds.
  std::atomic<int> active_clients_{0};
  InferenceStatistics statistics_;

  absl::Mutex mu_;
  absl::flat_hash_set<std::string> sizes_ ABSL_GUARDED_BY(mu_);  // Seen.
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_MODEL_METRICS_H_
