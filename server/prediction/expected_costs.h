#ifndef SFMAMBA_SERVER_PREDICTION_EXPECTED_COSTS_H_
#define SFMAMBA_SERVER_PREDICTION_EXPECTED_COSTS_H_

#include <array>
#include <atomic>

#include "absl/time/time.h"
#include "model/config.h"
#include "server/prediction/request_validation.h"

namespace sfmamba::prediction {

// The moving average of the ratio between the measured time and the expected
// time of work. All clients share one average. If one client sends slow
// pictures, the estimates for other clients therefore rise too. The average
// starts at 1 and stays between 1/4 and 4, so that this rise is limited.
//
// Thread-safe. If two threads add a measurement at the same time, one
// measurement may be lost.
class LearnedFactor {
 public:
  // Adds a measurement. Ignores work that is expected to take less than 50 us,
  // because overhead would dominate the measurement. If the ratio exceeds four
  // times the average, adds only four times the average, because the thread may
  // have waited for a CPU core.
  void Add(absl::Duration expected, absl::Duration measured);
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{1};
};

// Estimates how long one thread takes to decode an image and to encode an
// answer. An estimate is the time on a reference machine, multiplied by a
// factor learned on this machine. Each image format and each task has a
// separate factor. The thread pools order their work by these estimates.
// Admission uses the estimates to predict how long an image takes before and
// after its batch.
//
// Thread-safe.
class ExpectedCosts {
 public:
  // Decode() estimates the time to convert an image into model inputs.
  // Decoded() adds the measurement `took`. If the image is divided into parts,
  // `took` excludes the time to create the parts.
  absl::Duration Decode(const ImageFacts& image) const;
  void Decoded(const ImageFacts& image, absl::Duration took);

  // Encode() estimates the time to encode an answer. `cost` is the estimate for
  // the reference machine. Encoded() adds the measurement `took`.
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
