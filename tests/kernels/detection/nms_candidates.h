#ifndef SFMAMBA_TESTS_KERNELS_DETECTION_NMS_CANDIDATES_H_
#define SFMAMBA_TESTS_KERNELS_DETECTION_NMS_CANDIDATES_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/detection/nms.h"
#include "tests/testing/fixture.h"

namespace sfmamba::kernels {

inline constexpr int kAll = 1
                            << 30;  // Keeps all boxes that are not suppressed.

// The boxes of one image, with their scores and groups.
struct Candidates {
  std::vector<float> boxes, scores;
  std::vector<int32_t> groups;  // Empty if there is only one group.

  int count() const { return static_cast<int>(scores.size()); }

  void Add(const std::vector<float>& box, float score, int group = 0) {
    boxes.insert(boxes.end(), box.begin(), box.end());
    scores.push_back(score);
    groups.push_back(group);
  }

  // `kept` must have room for the smaller of `max_kept` and count().
  NmsArgs Args(float iou_threshold, int max_kept, int32_t* kept) const {
    return {count(),       boxes.data(),
            scores.data(), groups.empty() ? nullptr : groups.data(),
            iou_threshold, max_kept,
            kept};
  }
};

inline std::vector<float> Floats(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  const float* values = dense.const_data_ptr<float>();
  return {values, values + dense.numel()};
}

inline std::vector<int32_t> Integers(const at::Tensor& tensor) {
  const int64_t* values = tensor.const_data_ptr<int64_t>();
  return {values, values + tensor.numel()};
}

inline float Number(const Fixture& fixture, const std::string& key) {
  return Floats(fixture[key])[0];
}

inline Candidates FromFixture(const Fixture& fixture,
                              const std::string& prefix) {
  Candidates candidates;
  candidates.boxes = Floats(fixture[prefix + ".boxes"]);
  candidates.scores = Floats(fixture[prefix + ".scores"]);
  return candidates;
}

// Returns boxes that crowd in a square, in `num_groups` groups. Some boxes have
// equal scores.
inline Candidates Crowd(int count, int num_groups, unsigned seed = 1,
                        float square = 120) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> corner(0, square), side(0, 60);
  std::uniform_int_distribution<int> score(0, 40), group(0, num_groups - 1);
  Candidates candidates;
  for (int i = 0; i < count; ++i) {
    const float x = corner(random), y = corner(random);
    candidates.Add({x, y, x + side(random), y + side(random)},
                   score(random) / 40.0f, group(random));
  }
  return candidates;
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_DETECTION_NMS_CANDIDATES_H_
