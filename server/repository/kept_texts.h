#ifndef SFMAMBA_SERVER_REPOSITORY_KEPT_TEXTS_H_
#define SFMAMBA_SERVER_REPOSITORY_KEPT_TEXTS_H_

#include <cstddef>
#include <list>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/observability/log.h"

namespace sfmamba::repository {

// What was found out about models, as texts, each with a key: what it holds
// for. The latest are kept in memory, and each model's last one in a folder
// from one start to the next. Thread-safe.
class KeptTexts {
 public:
  static constexpr size_t kMostTexts = 256;  // In memory.

  struct Options {
    std::string folder;     // Empty: nothing is kept on disk.
    std::string extension;  // What files end with, such as ".times".
    std::string not_kept;   // What the log says if a file cannot be written.
  };

  // `log` outlives this.
  KeptTexts(Options options, observability::Logger* log)
      : options_(std::move(options)), log_(*log) {}

  // The text that was written with `key`, of whatever model, or else all that
  // the file of `model` ("models/{id}/versions/{n}") holds, which may be
  // anything: a text itself says what it holds for. Empty if there is neither.
  std::string Read(const std::string& model, absl::string_view key)
      ABSL_LOCKS_EXCLUDED(mu_);

  void Write(const std::string& model, absl::string_view key,
             const std::string& text) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Record {
    std::string key;
    std::string text;
  };

  std::string Path(const std::string& model) const;

  const Options options_;
  observability::Logger& log_;
  absl::Mutex mu_;
  // The one written last first.
  std::list<Record> records_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_KEPT_TEXTS_H_
