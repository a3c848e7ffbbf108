#ifndef SFMAMBA_MODEL_ENGINE_GRAPH_PLAN_H_
#define SFMAMBA_MODEL_ENGINE_GRAPH_PLAN_H_

#include <map>
#include <tuple>
#include <vector>

#include "absl/time/time.h"

namespace sfmamba::engine {

// Returns the number of images that a batch of `images` is padded to. There are
// few different results, so that a few captured graphs suffice. Up to 8 images
// there is no padding. Above 8 there are four sizes per power of two, so that
// at most a fifth of a padded batch is padding.
int PaddedBatchSize(int images);

// Returns all sizes that batches of 1 to `max_images` images are padded to, the
// largest first.
std::vector<int> PaddedBatchSizes(int max_images);

// Decides which batches are captured as a graph. The first batch of a kind is
// run and captured, later ones replay its graph. Not thread-safe.
class GraphPlan {
 public:
  enum class Step { kRun, kCapture, kReplay };

  // A kind of batch. It consists of the number of images after padding and
  // their size in pixels.
  struct Key {
    int images, height, width;

    bool operator<(const Key& other) const {
      return std::tie(images, height, width) <
             std::tie(other.images, other.height, other.width);
    }
  };

  // The first `capacity` kinds of batches are captured. Others are always run.
  explicit GraphPlan(int capacity) : capacity_(capacity) {}

  Step Next(const Key& key, absl::Time now) const;

  // Report the outcome of kCapture. One of the two must be called after it.
  // After a failure, batches of this kind are run. Capturing is retried after
  // kFirstRetry. The interval doubles with each further failure, up to
  // kLastRetry.
  void DidCapture(const Key& key) { states_[key] = {/*captured=*/true}; }
  void FailedToCapture(const Key& key, absl::Time now);

  // Forgets the captured graphs. Must be called when all of them have been
  // destroyed.
  void Reset();

  static constexpr absl::Duration kFirstRetry = absl::Seconds(10);
  static constexpr absl::Duration kLastRetry = absl::Minutes(10);

 private:
  struct State {
    bool captured = false;
    // When to retry a kind that could not be captured, and the last interval.
    absl::Time retry = absl::InfinitePast();
    absl::Duration pause = absl::ZeroDuration();
  };

  const int capacity_;
  std::map<Key, State> states_;  // Holds at most capacity_ kinds.
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_GRAPH_PLAN_H_
