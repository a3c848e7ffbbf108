// The BUILD file sets compiler flags for this file. With these flags, the loops
// are vectorized and call the vector math functions of the C library.
#include "server/prediction/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sfmamba::prediction {
namespace {

// The loops run over a multiple of kLanes values, so the logits are padded.
// Without padding, the compiler would use other instructions for the last
// values. These instructions would round differently.
constexpr size_t kLanes = 16;

}  // namespace

std::vector<float> Softmax(absl::Span<const float> logits) {
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  std::vector<float> scores;
  scores.reserve(logits.size() + kLanes);
  scores.assign(logits.begin(), logits.end());
  while (scores.size() % kLanes != 0) scores.push_back(kLowest);
  float max = kLowest;
  for (const float score : scores) max = std::max(max, score);
  double sum = 0;
  for (float& score : scores) sum += score = std::exp(score - max);
  const float share = 1 / sum;
  for (float& score : scores) score *= share;
  scores.resize(logits.size());
  return scores;
}

}  // namespace sfmamba::prediction
