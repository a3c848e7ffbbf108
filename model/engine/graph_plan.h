#ifndef SFMAMBA_MODEL_ENGINE_GRAPH_PLAN_H_
#define SFMAMBA_MODEL_ENGINE_GRAPH_PLAN_H_

#include <map>
#include <tuple>
#include <vector>

#include "absl/time/time.h"

namespace sfmamba::engine {

// Returns the number of images to which a batch of `images` images is padded.
// There are few possible results, so that few captured graphs suffice. Batches
// of up to 8 images are not padded. Above 8, there are four sizes per power of
// two, so at most a fifth of a padded batch is padding.
int PaddedBatchSize(int images);

// Returns all sizes to which batches of 1 to `max_images` images are padded, in
// descending order.
std::vector<int> PaddedBatchSizes(int max_images);

// Decides which batches are captured as a graph. A kind of batch is a number of
// images and their size. The first batch of a kind is run and captured. Later
// ones replay its graph. Not thread-safe.
class GraphPlan {
 public:
  enum class Step { kRun, kCapture, kReplay };

  // A kind of batch. `images` is the number of images after padding. Height and
  // width are in pixels.
  struct Key {
    int images, height, width;

    bool operator<(const Key& other) const {
      return std::tie(images, height, width) <
             std::tie(other.images, other.height, other.width);
    }
  };

  // At most `capacity` kinds of batches are captured. Batches of all other
  // kinds are always run.
  explicit GraphPlan(int capacity) : capacity_(capacity) {}

  Step Next(const Key& key, absl::Time now) const;

  // Report the result of a kCapture. The caller must call one of the two after
  // each kCapture. After a failure, batches of this kind are run, and capturing
  // is retried after kFirstRetry. The interval doubles with each further
  // failure, up to kLastRetry.
  void DidCapture(const Key& key) { states_[key] = {/*captured=*/true}; }
  void FailedToCapture(const Key& key, absl::Time now);

  // Forgets all captured graphs. Must be called when the caller has destroyed
  // them.
  void Reset();

  static constexpr absl::Duration kFirstRetry = absl::Seconds(10);
  static constexpr absl::Duration kLastRetry = absl::Minutes(10);

 private:
  struct State {
    bool captured = false;
    // For a kind that could not be captured: the time of the next try, and the
    // length of the last interval.
    absl::Time retry = absl::InfinitePast();
    absl::Duration pause = absl::ZeroDuration();
  };

  const int capacity_;
  std::map<Key, State> states_;  // At most capacity_ kinds.
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_GRAPH_PLAN_H_
