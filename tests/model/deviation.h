#ifndef SFMAMBA_TESTS_MODEL_DEVIATION_H_
#define SFMAMBA_TESTS_MODEL_DEVIATION_H_

#include <algorithm>
#include <cmath>
#include <vector>

namespace sfmamba::model {

// How far one image's logits are from its exact logits. A model in half
// precision is correct if the cosine is at least 0.9995, the deviation is at
// most 0.05, and the best class is the same.
struct Deviation {
  double cosine;
  double largest;  // In standard deviations of the exact ones.
  bool same_argmax;
};

// The vectors must have the same length.
inline Deviation DeviationOf(const std::vector<float>& logits,
                             const std::vector<float>& exact) {
  double ab = 0, aa = 0, bb = 0, sum = 0, largest = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double a = logits[i], b = exact[i];
    ab += a * b;
    aa += a * a;
    bb += b * b;
    sum += b;
    const double difference = std::fabs(a - b);
    if (!(difference <= largest)) largest = difference;  // True for NaN, too.
  }
  const double mean = sum / exact.size();
  const double deviation = std::sqrt(bb / exact.size() - mean * mean);
  const auto argmax = [](const std::vector<float>& x) {
    return std::max_element(x.begin(), x.end()) - x.begin();
  };
  return {ab / std::sqrt(aa * bb), largest / deviation,
          argmax(logits) == argmax(exact)};
}

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_DEVIATION_H_
