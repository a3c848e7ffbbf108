#ifndef SFMAMBA_TESTS_GPU_RANDOM_VALUES_H_
#define SFMAMBA_TESTS_GPU_RANDOM_VALUES_H_

#include <algorithm>
#include <random>
#include <vector>

namespace sfmamba {

// Returns normally distributed values, which repeat after 1000003 values.
template <typename T>
std::vector<T> RandomValues(size_t count, float mean = 0, float deviation = 1) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<T> block(std::min<size_t>(count, 1000003)), values(count);
  for (T& value : block) value = static_cast<T>(normal(random));
  for (size_t i = 0; i < count; ++i) values[i] = block[i % block.size()];
  return values;
}

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_RANDOM_VALUES_H_
