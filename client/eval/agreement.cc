#include "client/eval/agreement.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "client/eval/detector_score.h"

namespace sfmamba::client {
namespace {

constexpr float kSureScore = 0.5f;
constexpr double kSameBox = 0.9;  // Minimum intersection over union.

std::ptrdiff_t First(const std::vector<float>& logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

std::vector<const v1::Detection*> Sure(const v1::DetectResult& result) {
  std::vector<const v1::Detection*> sure;
  for (const v1::Detection& detection : result.detections()) {
    if (detection.score() > kSureScore) sure.push_back(&detection);
  }
  return sure;
}

}  // namespace

void LogitAgreement::Add(const std::vector<float>& logits,
                         const std::vector<float>& reference) {
  ++pictures_;
  same_first_ += First(logits) == First(reference);
  logits_ += logits.size();
  for (size_t i = 0; i < logits.size(); ++i) {
    const double expected = reference[i], difference = logits[i] - expected;
    squared_differences_ += difference * difference;
    sum_ += expected;
    squares_ += expected * expected;
  }
}

double LogitAgreement::SameFirstClass() const {
  return static_cast<double>(same_first_) / pictures_;
}

double LogitAgreement::Rms() const {
  const double mean = sum_ / logits_;
  const double variance = squares_ / logits_ - mean * mean;
  return std::sqrt(squared_differences_ / logits_ / variance);
}

void BoxAgreement::Add(const v1::DetectResult& result,
                       const v1::DetectResult& reference) {
  const std::vector<const v1::Detection*> found = Sure(result);
  std::vector<const v1::Detection*> expected = Sure(reference);
  boxes_ += found.size() + expected.size();
  for (const v1::Detection* detection : found) {
    const auto overlap = [detection](const v1::Detection* other) {
      return other->label() == detection->label()
                 ? Iou(ToCocoBox(detection->box()), ToCocoBox(other->box()))
                 : 0;
    };
    const auto best = std::max_element(
        expected.begin(), expected.end(),
        [&](const auto* a, const auto* b) { return overlap(a) < overlap(b); });
    if (best == expected.end() || overlap(*best) < kSameBox) continue;
    expected.erase(best);
    matched_ += 2;
  }
}

double BoxAgreement::Matched() const {
  return static_cast<double>(matched_) / boxes_;
}

}  // namespace sfmamba::client
