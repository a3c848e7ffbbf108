// BUILD has the compiler vectorise these loops.
#include "server/prediction/softmax.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

namespace sfmamba::prediction {
namespace {

constexpr int kLanes = 16;

// Combines all values, in kLanes parts that the processor computes at once.
// `start` must not change a value that it is combined with, or be one of them.
template <typename Combine>
float Reduce(absl::Span<const float> values, float start, Combine combine) {
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, start);
  const size_t whole = values.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = combine(lanes[lane], values[i + lane]);
    }
  }
  for (size_t i = whole; i < values.size(); ++i) {
    lanes[0] = combine(lanes[0], values[i]);
  }
  return std::accumulate(lanes, lanes + kLanes, start, combine);
}

// Returns e^x for x of 0 or less: 2^n e^r with a whole n. Below e^-88 it is 0.
// Source: Cephes, expf().
inline float Exp(float x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  // Adding 1.5 * 2^23 rounds to a whole number, which the lowest bits hold.
  constexpr float kRound = 12582912;
  constexpr int32_t kRoundBits = 0x4B400000, kBias = 127;
  x = x > -88 ? x : -88;
  const float rounded = x * kLog2E + kRound;
  const float n = rounded - kRound;
  int32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  bits = (bits - kRoundBits + kBias) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof(power));
  const float r = x - n * kLn2High - n * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return (p * r * r + r + 1) * power;
}

}  // namespace

std::vector<float> Softmax(absl::Span<const float> logits) {
  std::vector<float> scores(logits.begin(), logits.end());
  if (scores.empty()) return scores;
  const float max =
      Reduce(scores, scores[0], [](float a, float b) { return a > b ? a : b; });
  for (float& score : scores) score = Exp(score - max);
  const float share =
      1 / Reduce(scores, 0, [](float a, float b) { return a + b; });
  for (float& score : scores) score *= share;
  return scores;
}

}  // namespace sfmamba::prediction
