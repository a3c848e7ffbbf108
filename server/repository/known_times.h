#ifndef SFMAMBA_SERVER_REPOSITORY_KNOWN_TIMES_H_
#define SFMAMBA_SERVER_REPOSITORY_KNOWN_TIMES_H_

#include <cstddef>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/batching/batch_profile.h"

namespace sfmamba::repository {

// The times of models' batches, by a key that says what they hold for. A model
// whose network is known need not be measured again. Thread-safe.
class KnownTimes {
 public:
  using Times = std::vector<batching::BatchTime>;

  static constexpr size_t kMostKeys = 256;  // The oldest are forgotten.

  // Returns what was last set for `key`; empty if nothing is known.
  Times Get(absl::string_view key) const ABSL_LOCKS_EXCLUDED(mu_);
  void Set(const std::string& key, Times times) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  // By key. The one set last is first.
  std::list<std::pair<std::string, Times>> known_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_KNOWN_TIMES_H_
