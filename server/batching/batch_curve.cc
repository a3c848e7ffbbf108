#include "server/batching/batch_curve.h"

#include <algorithm>
#include <iterator>

namespace sfmamba::batching {
namespace {

// The weight of a new batch in each of three moving averages. The averages are
// for the duration, the deviation and the pace (see BatchCurve::pace()).
constexpr double kMeanWeight = 0.1;
constexpr double kDeviationWeight = 0.1;
constexpr double kPaceWeight = 0.05;
// The first kFirstBatches batches of a size determine Sample::first. Later
// batches of this size change pace() instead. A duration that was passed to
// Set() counts as kFirstBatches batches.
constexpr int kFirstBatches = 20;
// After the first batch of a size, the deviation is set to this fraction of the
// batch's duration.
constexpr double kFirstDeviation = 0.25;
// The distance between the mean and the 95th percentile of a normal
// distribution, in mean absolute deviations.
constexpr double kP95Deviations = 2.06;
// Batches of an efficient size run more images per second than batches of the
// next smaller efficient size, by at least this fraction.
constexpr double kBetter = 0.02;
// The estimates of a curve are fresh for some time after a batch has run or was
// measured. This time is the longer of two durations. The first is kFresh. The
// second is kFreshBatches times the estimated duration of the last batch.
constexpr absl::Duration kFresh = absl::Seconds(1);
constexpr int kFreshBatches = 3;
// An estimate is old if its size has not run for this long.
constexpr absl::Duration kOld = absl::Seconds(5);
// A small number of batches may all have been slow by accident. The estimate of
// a size is therefore dropped if all of these conditions hold:
// - Fewer than kFewBatches batches of the size have run.
// - The last of these batches ended more than kFresh ago.
// - Set() was never called for the size.
constexpr int kFewBatches = 3;

struct Block {
  double weight = 0;
  double sum = 0;
  int points = 0;

  double mean() const { return sum / weight; }
};

// Returns ascending values that differ as little as possible from `values`. The
// method is isotonic regression, which minimizes the weighted squared
// differences.
std::vector<double> Ascending(const std::vector<double>& values,
                              const std::vector<double>& weights) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < values.size(); ++i) {
    blocks.push_back({weights[i], weights[i] * values[i], 1});
    while (blocks.size() > 1 &&
           blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().weight += last.weight;
      blocks.back().sum += last.sum;
      blocks.back().points += last.points;
    }
  }
  std::vector<double> fitted;
  for (const Block& block : blocks) {
    fitted.insert(fitted.end(), block.points, block.mean());
  }
  return fitted;
}

// Sets (*curve)[n] to the duration of a batch of n images, for each n from 1.
// values[i] is the duration for sizes[i] images, in seconds. The durations for
// other sizes are interpolated.
void Interpolate(const std::vector<int>& sizes,
                 const std::vector<double>& values,
                 std::vector<absl::Duration>* curve) {
  size_t next = 0;  // The index of the first size that is at least n.
  for (int n = 1; n < static_cast<int>(curve->size()); ++n) {
    while (next < sizes.size() && sizes[next] < n) ++next;
    double seconds;
    if (next == sizes.size()) {
      seconds = values.back();
    } else if (next == 0) {
      seconds = values[0] * n / sizes[0];
    } else {
      const double part =
          double(n - sizes[next - 1]) / (sizes[next] - sizes[next - 1]);
      seconds = values[next - 1] + part * (values[next] - values[next - 1]);
    }
    (*curve)[n] = absl::Seconds(seconds);
  }
}

}  // namespace

BatchCurve::BatchCurve(int max_images)
    : max_images_(max_images), median_(max_images + 1), p95_(max_images + 1) {
  for (int n = 1; n <= max_images; ++n) efficient_.push_back(n);
}

bool BatchCurve::Sample::IsOld(absl::Time now) const {
  return now - updated > kOld;
}

bool BatchCurve::IsFresh(absl::Time now) const {
  // Finds the largest size among the sizes that were updated last.
  const auto last = std::find_if(
      samples_.rbegin(), samples_.rend(),
      [this](const auto& sample) { return sample.second.updated == updated_; });
  if (last == samples_.rend()) return false;
  return now - updated_ <=
         std::max(kFresh, kFreshBatches * median_[last->first]);
}

bool BatchCurve::LargerAreOld(int images, absl::Time now) const {
  return std::all_of(
      samples_.upper_bound(images), samples_.end(),
      [now](const auto& sample) { return sample.second.IsOld(now); });
}

void BatchCurve::Set(int images, const Point& point, absl::Time now) {
  Sample& sample = samples_[images];
  sample.mean = absl::ToDoubleSeconds(point.median);
  sample.first = sample.mean / pace_;
  sample.deviation =
      absl::ToDoubleSeconds(point.p95 - point.median) / kP95Deviations;
  sample.pace = pace_;
  sample.batches = kFirstBatches;
  sample.runs = 0;
  sample.set = true;
  sample.updated = updated_ = now;
  Fit(now);
}

void BatchCurve::Shorten(int images, double ratio) {
  if (ratio >= 1) return;
  for (auto it = samples_.upper_bound(images); it != samples_.end(); ++it) {
    Sample& larger = it->second;
    if (larger.runs > 0 || !larger.IsOld(updated_)) continue;
    larger.mean *= ratio;
    larger.deviation *= ratio;
  }
}

void BatchCurve::Record(int images, absl::Duration duration, absl::Time now) {
  double seconds = absl::ToDoubleSeconds(duration);
  Sample& sample = samples_[images];
  if (sample.batches > 0 && sample.IsOld(updated_)) {
    // Other sizes have run since this size last ran, so the estimate of this
    // size is computed anew. A disturbance can only lengthen a batch. The
    // estimate therefore starts with the shorter of the old estimate and the
    // new duration.
    const double known = sample.mean * pace_ / sample.pace;
    if (sample.runs == 0) Shorten(images, seconds / known);
    seconds = std::min(seconds, known);
    sample.batches = 0;
  }
  ++sample.runs;
  if (++sample.batches == 1) {
    sample.mean = seconds;
    sample.deviation = kFirstDeviation * seconds;
  } else {
    // Limits the effect of one very long batch, which says little about the
    // following batches.
    seconds = std::min(seconds,
                       2 * (sample.mean + kP95Deviations * sample.deviation));
    const double error = seconds - sample.mean;
    sample.mean += std::max(kMeanWeight, 1.0 / sample.batches) * error;
    sample.deviation +=
        kDeviationWeight * ((error < 0 ? -error : error) - sample.deviation);
  }
  // The first batches of a size determine how long a batch of this size takes
  // at a pace of 1. Later batches show how much slower or faster the device has
  // become since then.
  if (sample.batches <= kFirstBatches) {
    sample.first = sample.mean / pace_;
  } else {
    pace_ += kPaceWeight * (seconds / sample.first - pace_);
  }
  sample.pace = pace_;
  sample.updated = updated_ = now;
  for (auto it = samples_.begin(); it != samples_.end();) {
    const Sample& other = it->second;
    const bool stray =
        !other.set && other.runs < kFewBatches && now - other.updated > kFresh;
    // True if an old measurement of a smaller size exceeds the estimate for
    // this batch's size. Such a measurement was wrong, because a smaller batch
    // cannot take longer than a larger one.
    const bool refuted = other.runs == 0 && other.IsOld(now) &&
                         it->first < images && other.mean > sample.mean;
    it = stray || refuted ? samples_.erase(it) : std::next(it);
  }
  Fit(now);
}

std::map<int, BatchCurve::Point> BatchCurve::Points() const {
  std::map<int, Point> points;
  for (const auto& [images, sample] : samples_) {
    points[images] = {median_[images], p95_[images]};
  }
  return points;
}

absl::Duration BatchCurve::Work(int images) const {
  const int best = best_size();
  absl::Duration work = images / best * median_[best];
  if (images % best > 0) work += median_[images % best];
  return work;
}

void BatchCurve::Fit(absl::Time now) {
  std::vector<int> sizes;
  std::vector<double> medians, p95s, weights;
  for (const auto& [images, sample] : samples_) {
    // If a size has not run recently, its estimate is multiplied by the change
    // of the pace since the last run.
    const double change =
        now - sample.updated > kFresh ? pace_ / sample.pace : 1;
    sizes.push_back(images);
    medians.push_back(change * sample.mean);
    p95s.push_back(change * (sample.mean + kP95Deviations * sample.deviation));
    weights.push_back(std::min(sample.batches, kFirstBatches));
  }
  Interpolate(sizes, Ascending(medians, weights), &median_);
  Interpolate(sizes, Ascending(p95s, weights), &p95_);
  efficient_.clear();
  double best = 0;
  for (int n = 1; n <= max_images_; ++n) {
    const double rate = n / std::max(absl::ToDoubleSeconds(median_[n]), 1e-9);
    if (rate <= (1 + kBetter) * best) continue;
    best = rate;
    efficient_.push_back(n);
  }
}

}  // namespace sfmamba::batching
