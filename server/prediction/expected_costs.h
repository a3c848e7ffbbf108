#ifndef SFMAMBA_SERVER_PREDICTION_EXPECTED_COSTS_H_
#define SFMAMBA_SERVER_PREDICTION_EXPECTED_COSTS_H_

#include <array>
#include <atomic>

#include "absl/time/time.h"
#include "model/config.h"
#include "server/prediction/request_validation.h"

namespace sfmamba::prediction {

// A moving average of how many times as long as expected something took. It
// begins at 1 and stays between 1/4 and 4: all clients share it, and the
// pictures of one that are slow to decode must not have those of others
// refused.
//
// Thread-safe: of two that are added at the same time, one may be lost.
class LearnedFactor {
 public:
  // Ignores what was expected to take less than 50 us: mostly other things are
  // measured then. A thread that had to wait for a processor is cut off at four
  // times the average.
  void Add(absl::Duration expected, absl::Duration measured);
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{1};
};

// How long one thread is expected to work on parts of a request: what they took
// on the machine where they were first measured, times what is learned of this
// one, by kind. It orders the work of the pools and tells admission how long an
// image will take before and after its batch.
//
// Thread-safe.
class ExpectedCosts {
 public:
  // Turning the image into a model's inputs. Decoded() says how long it took
  // without dividing it.
  absl::Duration Decode(const ImageFacts& image) const;
  void Decoded(const ImageFacts& image, absl::Duration took);

  // Encoding what takes `cost` by the numbers of the task's handler. Encoded()
  // says how long it took.
  absl::Duration Encode(model::VisionTask task, absl::Duration cost) const {
    return cost * answers_[static_cast<int>(task)].value();
  }
  void Encoded(model::VisionTask task, absl::Duration cost,
               absl::Duration took) {
    answers_[static_cast<int>(task)].Add(cost, took);
  }

 private:
  static constexpr int kFormatCount = 5;
  static constexpr int kTaskCount = 3;

  std::array<LearnedFactor, kFormatCount> formats_;
  std::array<LearnedFactor, kTaskCount> answers_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_EXPECTED_COSTS_H_
