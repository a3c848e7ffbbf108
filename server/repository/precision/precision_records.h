#ifndef SFMAMBA_SERVER_REPOSITORY_PRECISION_RECORDS_H_
#define SFMAMBA_SERVER_REPOSITORY_PRECISION_RECORDS_H_

#include <list>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/observability/log.h"
#include "server/repository/precision/precision_check.h"

namespace sfmamba::repository {

// The model, device and build that a check of a precision holds for. None
// contains a newline.
struct PrecisionKey {
  std::string content;  // The network and the digest of its weights.
  std::string device;
  std::string build;  // Identifies the kernels' build.
};

// Keeps the results of precision checks: the latest 256 in memory, and each
// model's last one in a folder from one start to the next. Thread-safe.
class PrecisionRecords {
 public:
  // An empty `folder`: nothing is kept on disk. `log` outlives this.
  PrecisionRecords(std::string folder, observability::Logger* log)
      : folder_(std::move(folder)), log_(*log) {}

  // `model` is its name, "models/{id}/versions/{n}". None if it is not known,
  // or if the file is for another key or broken.
  std::optional<PrecisionCheck> Read(const std::string& model,
                                     const PrecisionKey& key)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The log says if the file cannot be written.
  void Write(const std::string& model, const PrecisionKey& key,
             const PrecisionCheck& check) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Record {
    std::string key;
    PrecisionCheck check;
  };

  std::string Path(const std::string& model) const;

  const std::string folder_;
  observability::Logger& log_;
  absl::Mutex mu_;
  // The one written last first.
  std::list<Record> records_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_PRECISION_RECORDS_H_
