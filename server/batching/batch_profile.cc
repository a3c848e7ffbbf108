#include "server/batching/batch_profile.h"

#include <algorithm>

namespace sfmamba::batching {
namespace {

// The maximum number of batch keys that have a curve. Without this limit, the
// number could grow forever. The reason is that a detector or segmenter accepts
// images of any size, and each padded size has its own batch key.
constexpr size_t kMaxKeys = 1024;

}  // namespace

void AddMultiples(int max_images, std::vector<BatchTime>* times) {
  if (times->empty()) return;
  const BatchTime last = times->back();
  for (int images = last.images; images < max_images;) {
    images = std::min(2 * images, max_images);
    const double rounds = double(images) / last.images;
    times->push_back(
        {last.key, images, rounds * last.median, rounds * last.p95});
  }
}

BatchCurve& BatchProfile::MutableCurve(const BatchKey& key) {
  if (curves_.size() >= kMaxKeys && curves_.count(key) == 0) {
    curves_.erase(std::min_element(
        curves_.begin(), curves_.end(), [](const auto& a, const auto& b) {
          return a.second.updated() < b.second.updated();
        }));
  }
  return curves_.try_emplace(key, unknown_).first->second;
}

void BatchProfile::Record(const BatchKey& key, int images,
                          absl::Duration duration, absl::Time now) {
  MutableCurve(key).Record(images, duration, now);
}

void BatchProfile::Import(const std::vector<BatchTime>& times, absl::Time now) {
  for (const BatchTime& time : times) {
    if (time.images > unknown_.max_images()) continue;
    MutableCurve(time.key).Set(time.images, {time.median, time.p95}, now);
  }
}

std::vector<BatchTime> BatchProfile::Export() const {
  std::vector<BatchTime> times;
  for (const auto& [key, curve] : curves_) {
    for (const auto& [images, point] : curve.Points()) {
      times.push_back({key, images, point.median, point.p95});
    }
  }
  return times;
}

const BatchCurve& BatchProfile::Curve(const BatchKey& key) const {
  const auto found = curves_.find(key);
  return found == curves_.end() ? unknown_ : found->second;
}

}  // namespace sfmamba::batching
