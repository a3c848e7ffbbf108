#ifndef SFMAMBA_SERVER_REPOSITORY_BATCH_TIMES_H_
#define SFMAMBA_SERVER_REPOSITORY_BATCH_TIMES_H_

#include <string>
#include <utility>
#include <vector>

#include "server/batching/batch_profile_file.h"
#include "server/observability/log.h"

namespace sfmamba::repository {

// The folder where what is known of the times of models' batches is kept from
// one start to the next, and the log that says what is not. Thread-safe.
class BatchTimes {
 public:
  // An empty `folder`: nothing is kept. `log` outlives this.
  BatchTimes(std::string folder, observability::Logger* log)
      : folder_(std::move(folder)), log_(*log) {}

  // What is known of a model's batches; empty if nothing is. `model` is its
  // name in the log, "models/{id}/versions/{n}".
  std::vector<batching::BatchTime> Read(
      const std::string& model, const batching::BatchProfileKey& key) const;

  void Write(const std::string& model, const batching::BatchProfileKey& key,
             const std::vector<batching::BatchTime>& times) const;

 private:
  std::string Path(const std::string& model) const;

  const std::string folder_;
  observability::Logger& log_;
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_BATCH_TIMES_H_
