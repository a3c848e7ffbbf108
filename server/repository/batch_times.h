#ifndef SFMAMBA_SERVER_REPOSITORY_BATCH_TIMES_H_
#define SFMAMBA_SERVER_REPOSITORY_BATCH_TIMES_H_

#include <list>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/batching/batch_profile_file.h"
#include "server/observability/log.h"

namespace sfmamba::repository {

// What is known of the times of models' batches: of the networks that were
// loaded lately, and from one start to the next in a folder. The log says what
// is not kept there. Thread-safe.
class BatchTimes {
 public:
  // An empty `folder`: nothing is kept on disk. `log` outlives this.
  BatchTimes(std::string folder, observability::Logger* log)
      : folder_(std::move(folder)), log_(*log) {}

  // What is known of a model's batches; empty if nothing is. `model` is its
  // name in the log, "models/{id}/versions/{n}"; what another model or version
  // with the same key wrote is known too.
  std::vector<batching::BatchTime> Read(const std::string& model,
                                        const batching::BatchProfileKey& key)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Nothing is written if `times` is empty.
  void Write(const std::string& model, const batching::BatchProfileKey& key,
             const std::vector<batching::BatchTime>& times)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Record {
    std::string key;
    std::vector<batching::BatchTime> times;
  };

  void Remember(const batching::BatchProfileKey& key,
                const std::vector<batching::BatchTime>& times)
      ABSL_LOCKS_EXCLUDED(mu_);
  std::string Path(const std::string& model) const;

  const std::string folder_;
  observability::Logger& log_;
  absl::Mutex mu_;
  // The one written last first.
  std::list<Record> records_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_BATCH_TIMES_H_
