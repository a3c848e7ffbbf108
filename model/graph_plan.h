#ifndef SFMAMBA_MODEL_GRAPH_PLAN_H_
#define SFMAMBA_MODEL_GRAPH_PLAN_H_

#include <map>
#include <tuple>

namespace sfmamba {

// Images that a batch of `images` is padded to, so that a few captured graphs
// serve all sizes: up to 8 the number itself, then four steps to each power of
// two. At most a fifth of a padded batch is padding.
int GraphBucket(int images);

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

  Step Next(const Key& key) const;

  // What came of kCapture; a failure is not tried again.
  void DidCapture(const Key& key) { states_[key] = State::kCaptured; }
  void FailedToCapture(const Key& key) { states_[key] = State::kRefused; }

  // All graphs are gone.
  void Reset();

 private:
  enum class State { kCaptured, kRefused };

  const int capacity_;
  std::map<Key, State> states_;  // Of capacity_ kinds at most.
};

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_GRAPH_PLAN_H_
