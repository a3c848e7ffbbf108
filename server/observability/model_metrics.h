#ifndef SFMAMBA_SERVER_OBSERVABILITY_MODEL_METRICS_H_
#define SFMAMBA_SERVER_OBSERVABILITY_MODEL_METRICS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "server/observability/inference_statistics.h"
#include "server/observability/metric_names.h"
#include "server/observability/sharded_histogram.h"
#include "server/shares/priority.h"

namespace sfmamba::observability {

class Metrics;
struct ModelSeries;  // In model_series.h.

// The series of one version of a model. They are removed when the last owner
// releases this. Thread-safe; the verbs take no lock that a scrape holds for
// long.
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
  // images, padded to `padded`, has ended. `bucket` is a size such as
  // "224x224", `trigger` why the batch left its queue. Sizes after the first 64
  // are counted as "other", because a dense model may have thousands.
  void BatchStarted();
  void BatchRun(absl::string_view bucket, absl::string_view trigger, int items,
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

  ModelMetrics(std::shared_ptr<ModelSeries> shared, absl::string_view version);

  prometheus::Counter* RequestsOf(Method method, absl::StatusCode code,
                                  absl::string_view reason)
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<ModelSeries> shared_;
  const std::string version_;
  std::array<prometheus::Counter*, kItemOutcomeCount> items_;
  struct Queue {
    std::atomic<int64_t> items{0};
    std::atomic<int64_t> bytes{0};
    std::atomic<int64_t> oldest_nanos{kNoTime};  // In SteadyNow()'s time.
  };
  std::array<Queue, server::kPriorityCount> queues_;  // By priority.
  std::atomic<double> predicted_wait_{-1};  // Seconds; negative: unknown.
  InferenceStatistics statistics_;

  // One of `requests_` for each method, found without a lock.
  std::array<std::atomic<prometheus::Counter*>, kMethodCount> ok_requests_ = {};

  absl::Mutex mu_;
  // The members below are created when first counted, because most codes and
  // buckets never are.
  std::array<prometheus::Gauge*, kModelStateCount> state_
      ABSL_GUARDED_BY(mu_) = {};
  prometheus::Gauge* alive_ ABSL_GUARDED_BY(mu_) = nullptr;
  absl::flat_hash_set<ShardedHistogram*> load_durations_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::tuple<Method, absl::StatusCode, std::string>,
                      prometheus::Counter*>
      requests_ ABSL_GUARDED_BY(mu_);  // By method, code and reason.
  absl::flat_hash_map<std::string, prometheus::Counter*> batches_
      ABSL_GUARDED_BY(mu_);  // By bucket and trigger.
  absl::flat_hash_set<std::string> buckets_ ABSL_GUARDED_BY(mu_);  // Seen.
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_MODEL_METRICS_H_
