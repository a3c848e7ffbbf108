#include "server/batching/batch_profile.h"

#include <algorithm>

namespace sfmamba::batching {
namespace {

// A dense model may see any number of sizes.
constexpr size_t kMaxSizes = 1024;
// The weights of a new duration in the mean and in the deviation.
constexpr double kMeanWeight = 0.2;
constexpr double kDeviationWeight = 0.25;
// The deviation after the first batch, as a part of its duration.
constexpr double kFirstDeviation = 0.25;
// How long an estimate holds: this, or so many times the mean if that is more.
constexpr absl::Duration kFresh = absl::Seconds(1);
constexpr int kFreshBatches = 3;

}  // namespace

bool BatchProfile::Estimate::is_fresh(absl::Time now) const {
  return now - updated <= std::max(kFresh, kFreshBatches * mean);
}

void BatchProfile::Record(Size size, int images, absl::Duration duration,
                          absl::Time now) {
  if (estimates_.size() >= kMaxSizes && estimates_.count(size) == 0) {
    estimates_.clear();
  }
  const auto [it, is_new] = estimates_[size].try_emplace(images);
  Estimate& estimate = it->second;
  if (is_new || !estimate.is_fresh(now)) {
    estimate = {duration, kFirstDeviation * duration, now};
    return;
  }
  // One batch that took very long says little about the next.
  duration = std::min(duration, 2 * estimate.upper());
  const absl::Duration error = duration - estimate.mean;
  estimate.mean += kMeanWeight * error;
  estimate.deviation +=
      kDeviationWeight * (absl::AbsDuration(error) - estimate.deviation);
  estimate.updated = now;
}

absl::Duration BatchProfile::Expected(Size size, int images,
                                      absl::Time now) const {
  const auto found = estimates_.find(size);
  if (found == estimates_.end()) return absl::ZeroDuration();
  // A batch takes no less than a smaller one, and an image of it no less than
  // one of a larger batch.
  absl::Duration expected;
  for (const auto& [n, estimate] : found->second) {
    if (!estimate.is_fresh(now)) continue;
    if (n == images) return estimate.upper();
    expected = std::max(
        expected, n < images ? estimate.mean : estimate.mean * images / n);
  }
  return expected;
}

}  // namespace sfmamba::batching
