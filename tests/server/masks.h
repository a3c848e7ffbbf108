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

// Decodes a grey PNG with libpng, value by value. Fails the test if `bytes` is
// not a grey PNG. If `bytes` is not a PNG at all, returns an empty result.
GreyPng DecodeGreyPng(const std::string& bytes);

// Decodes COCO's compressed string to the mask [height, width], by COCO's own
// rules. Fails the test if a count is invalid or if the sum of the counts is
// not height * width.
std::vector<int> DecodeRle(const std::string& counts, int height, int width);

}  // namespace sfmamba::server

#endif  // SFMAMBA_TESTS_SERVER_MASKS_H_
