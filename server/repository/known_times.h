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

// Stores the measured durations of batches. The key identifies the network, the
// device, the precision and the number of contexts (concurrent batches). A
// later load with the same key uses the stored durations and measures nothing.
// Thread-safe.
class KnownTimes {
 public:
  using Times = std::vector<batching::BatchTime>;

  // The maximum number of keys. A further key replaces the least recently set
  // key.
  static constexpr size_t kMostKeys = 256;

  // Returns the times that were last set for `key`, or an empty list.
  Times Get(absl::string_view key) const ABSL_LOCKS_EXCLUDED(mu_);
  void Set(const std::string& key, Times times) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  // The most recently set entry is first.
  std::list<std::pair<std::string, Times>> known_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_KNOWN_TIMES_H_
