#ifndef SFMAMBA_SERVER_OBSERVABILITY_INFERENCE_STATISTICS_H_
#define SFMAMBA_SERVER_OBSERVABILITY_INFERENCE_STATISTICS_H_

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

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

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_INFERENCE_STATISTICS_H_
