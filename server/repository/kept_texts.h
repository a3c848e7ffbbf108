#ifndef SFMAMBA_SERVER_REPOSITORY_KEPT_TEXTS_H_
#define SFMAMBA_SERVER_REPOSITORY_KEPT_TEXTS_H_

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/observability/log.h"

namespace sfmamba::repository {

// Returns the key, some lines, of what was found out about a network on a
// device by a build of this program. `what` names it and its format.
std::string KeyOf(absl::string_view what, absl::string_view network,
                  absl::string_view device, absl::string_view build);

// The times of models' batches, as texts, each with a key: what it holds for.
// The latest are kept in memory, and each model's last one, behind its key, in
// a folder from one start to the next. Thread-safe.
class KeptTexts {
 public:
  static constexpr size_t kMostTexts = 256;  // In memory.

  // With an empty `folder` nothing is kept on disk. `log` outlives this.
  KeptTexts(std::string folder, observability::Logger* log)
      : folder_(std::move(folder)), log_(*log) {}

  // The text that was written with `key`, of whatever model, or else what the
  // file of `model` ("models/{id}/versions/{n}") has behind `key`, which may be
  // anything. None if there is neither.
  std::optional<std::string> Read(const std::string& model,
                                  absl::string_view key)
      ABSL_LOCKS_EXCLUDED(mu_);

  void Write(const std::string& model, absl::string_view key,
             const std::string& text) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Record {
    std::string key;
    std::string text;
  };

  std::string Path(const std::string& model) const;

  const std::string folder_;
  observability::Logger& log_;
  absl::Mutex mu_;
  // The one written last first.
  std::list<Record> records_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_KEPT_TEXTS_H_
