#ifndef SFMAMBA_TESTS_TESTING_PLANES_H_
#define SFMAMBA_TESTS_TESTING_PLANES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sfmamba {

// Returns the planes [3, n] of pixels [n, 3].
inline std::vector<uint8_t> PlanesOf(const std::vector<uint8_t>& pixels) {
  std::vector<uint8_t> planes(pixels.size());
  for (size_t i = 0; i < pixels.size(); ++i) {
    planes[i % 3 * (pixels.size() / 3) + i / 3] = pixels[i];
  }
  return planes;
}

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_PLANES_H_
