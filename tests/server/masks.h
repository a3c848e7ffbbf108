#ifndef SFMAMBA_TESTS_SERVER_MASKS_H_
#define SFMAMBA_TESTS_SERVER_MASKS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace sfmamba::server {

struct GreyPng {
  int width = 0;
  int height = 0;
  int bit_depth = 0;
  std::vector<int> values;  // [height, width]
};

// Read by libpng, value by value. Empty, and a failure of the test, if it is no
// grey PNG.
GreyPng DecodeGreyPng(const std::string& bytes);

// COCO's compressed string back to the mask, [height, width], by COCO's own
// rules. A failure of the test unless the counts add up.
std::vector<int> DecodeRle(const std::string& counts, int height, int width);

}  // namespace sfmamba::server

#endif  // SFMAMBA_TESTS_SERVER_MASKS_H_
