#ifndef SFMAMBA_MODEL_ENGINE_GRAPH_PLAN_H_
#define SFMAMBA_MODEL_ENGINE_GRAPH_PLAN_H_

#include <map>
#include <tuple>
#include <vector>

#include "absl/time/time.h"

namespace sfmamba::engine {

// Images that a batch of `images` is padded to, so that a few captured graphs
// serve all sizes: up to 8 the number itself, then four steps to each power of
// two. At most a fifth of a padded batch is padding.
int PaddedBatchSize(int images);

// All sizes that batches of 1 to `max_images` images are padded to, the largest
// first.
std::vector<int> PaddedBatchSizes(int max_images);

// Which batches are captured as a graph: the first of a kind is run and
// captured, the others are replayed. Not thread-safe.
class GraphPlan {
 public:
  enum class Step { kRun, kCapture, kReplay };

  // A kind of batch: images after padding, and their size in pixels.
  struct Key {
    int images, height, width;

    bool operator<(const Key& other) const {
      return std::tie(images, height, width) <
             std::tie(other.images, other.height, other.width);
    }
  };

  // At most `capacity` kinds are captured, the first that come; the others are
  // always run.
  explicit GraphPlan(int capacity) : capacity_(capacity) {}

  Step Next(const Key& key, absl::Time now) const;

  // What came of kCapture. After a failure the kind is run, and captured again
  // when kFirstRetry has passed, after each further failure twice that time,
  // but at most kLastRetry.
  void DidCapture(const Key& key) { states_[key] = {/*captured=*/true}; }
  void FailedToCapture(const Key& key, absl::Time now);

  // All graphs are gone.
  void Reset();

  static constexpr absl::Duration kFirstRetry = absl::Seconds(10);
  static constexpr absl::Duration kLastRetry = absl::Minutes(10);

 private:
  struct State {
    bool captured = false;
    // Of a kind that could not be captured.
    absl::Time retry = absl::InfinitePast();
    absl::Duration pause = absl::ZeroDuration();
  };

  const int capacity_;
  std::map<Key, State> states_;  // Of capacity_ kinds at most.
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_GRAPH_PLAN_H_
