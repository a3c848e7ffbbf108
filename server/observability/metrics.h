#ifndef SFMAMBA_SERVER_OBSERVABILITY_METRICS_H_
#define SFMAMBA_SERVER_OBSERVABILITY_METRICS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/metric_family.h"
#include "server/observability/batch_trigger.h"

namespace sfmamba::observability {

enum class Method {
  kClassify,
  kDetect,
  kSegment,
  kStreamPredict,
  kGetModel,
  kListModels,
};
inline constexpr int kMethodCount = 6;

enum class Stage { kDecode, kPreprocess, kQueue, kInference, kPostprocess };
inline constexpr int kStageCount = 5;

enum class ItemOutcome { kOk, kRejected, kExpired, kCancelled, kError };
inline constexpr int kItemOutcomeCount = 5;

enum class ModelState { kLoading, kReady, kUnavailable };
inline constexpr int kModelStateCount = 3;

// The words of labels: "Classify", "decode", "ok", "full", "READY".
absl::string_view MethodName(Method method);
absl::string_view StageName(Stage stage);
absl::string_view ItemOutcomeName(ItemOutcome outcome);
absl::string_view BatchTriggerName(BatchTrigger trigger);
absl::string_view ModelStateName(ModelState state);

class Metrics;
struct MetricFamilies;  // In metric_families.h.

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
  void RequestDone(Method method, absl::StatusCode code,
                   absl::Duration duration);
  void ItemDone(ItemOutcome outcome);
  void Rejected(absl::string_view reason);       // Such as "QUEUE_FULL".
  void DeadlineMissed(absl::string_view stage);  // Such as "queue".
  void StageDone(Stage stage, absl::Duration duration);

  // Called by the executor when a batch begins, and when a batch of `items`
  // images, padded to `padded`, has ended. `bucket` is a size such as
  // "224x224". Sizes after the first 64 are counted as "other", because a dense
  // model may have thousands.
  void BatchStarted();
  void BatchRun(absl::string_view bucket, BatchTrigger trigger, int items,
                int padded);
  // Sets what waits now. `oldest` is the submission of the oldest image, in
  // SteadyNow()'s time, or InfiniteFuture() if no image waits.
  void QueueChanged(int items, int64_t bytes, absl::Time oldest);

  void CaptureFailed();  // A CUDA graph could not be recorded.

  // Called by the repository.
  void StateChanged(ModelState state);
  void LoadDone(bool ok, absl::Duration duration);

 private:
  friend class Metrics;
  struct Shared;  // The series that all versions of a model share.

  ModelMetrics(std::shared_ptr<Shared> shared, absl::string_view version);

  const std::shared_ptr<Shared> shared_;
  const std::string version_;
  std::array<prometheus::Counter*, kItemOutcomeCount> items_;
  std::atomic<int64_t> queue_items_{0};
  std::atomic<int64_t> queue_bytes_{0};
  std::atomic<int64_t> oldest_nanos_;  // SteadyNow()'s; int64 max if none.

  absl::Mutex mu_;
  // The members below are created when first counted, because most codes and
  // buckets never are.
  std::array<prometheus::Gauge*, kModelStateCount> state_
      ABSL_GUARDED_BY(mu_) = {};
  absl::flat_hash_set<prometheus::Histogram*> load_durations_
      ABSL_GUARDED_BY(mu_);
  std::array<std::array<prometheus::Counter*, 17>, kMethodCount> requests_
      ABSL_GUARDED_BY(mu_) = {};
  absl::flat_hash_map<std::string, prometheus::Counter*> batches_
      ABSL_GUARDED_BY(mu_);  // By bucket and trigger.
  absl::flat_hash_set<std::string> buckets_ ABSL_GUARDED_BY(mu_);  // Seen.
};

struct BuildInfo {
  std::string version;
  std::string revision;
  std::string cuda;  // Empty: built without.
  std::string torch;
};

// All metrics of the server: their names, help and buckets, and the verbs that
// count. docs/serving.md, "Metrics", lists them.
//
// Thread-safe. Outlives the ModelMetrics it makes.
class Metrics {
 public:
  explicit Metrics(const BuildInfo& build);
  ~Metrics();

  // The series of a version; calls with equal arguments share one object.
  std::shared_ptr<ModelMetrics> Model(absl::string_view model,
                                      absl::string_view version)
      ABSL_LOCKS_EXCLUDED(mu_);
  // For requests that name no known model. They are counted as "_unknown", so
  // that callers cannot make labels.
  ModelMetrics& UnknownModel() { return *unknown_; }
  // For requests about no single model.
  ModelMetrics& NoModel() { return *none_; }

  void RequestStarted(Method method, int64_t bytes);
  void RequestFinished(Method method);  // RequestDone counts it.

  // `format` is "jpeg", "png", "webp", "pixels", "tensor" or "unknown".
  void ImageDecoded(absl::string_view format, int64_t pixels);
  void ImageFailed(absl::string_view format, absl::string_view reason);

  // A decode job was accepted by the pool; it began; it ended.
  void DecodeQueued();
  void DecodeStarted();
  void DecodeDone();

  // Returns all series, for a scraper.
  std::vector<prometheus::MetricFamily> Collect() const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The items, bytes and age of what waits, summed over a model's versions.
  std::vector<prometheus::MetricFamily> CollectQueues() const;

  const std::unique_ptr<MetricFamilies> families_;

  mutable absl::Mutex mu_;
  absl::flat_hash_map<std::string, std::weak_ptr<ModelMetrics::Shared>> shared_
      ABSL_GUARDED_BY(mu_);  // By model.
  absl::flat_hash_map<std::pair<std::string, std::string>,
                      std::weak_ptr<ModelMetrics>>
      models_ ABSL_GUARDED_BY(mu_);  // By model and version.

  std::shared_ptr<ModelMetrics> unknown_;
  std::shared_ptr<ModelMetrics> none_;
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_METRICS_H_
