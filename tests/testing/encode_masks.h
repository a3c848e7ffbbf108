#ifndef SFMAMBA_TESTS_TESTING_ENCODE_MASKS_H_
#define SFMAMBA_TESTS_TESTING_ENCODE_MASKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mask.h"

// Whole masks and maps, which the server encodes in pieces.
namespace sfmamba::base {

// COCO's compressed string of run lengths, by its definition.
std::string CompressCounts(absl::Span<const int64_t> counts);

// The compressed string of `mask`, shifted by `left` and `top` pixels, in a
// picture of `height` x `width`, inside of which it lies.
std::string EncodeRle(const Mask& mask, int left, int top, int height,
                      int width);

// A string for each class 0 .. classes - 1 of a map [height, width] of class
// indices; empty for those that do not occur.
std::vector<std::string> EncodeRlePerClass(const std::vector<uint16_t>& map,
                                           int height, int width, int classes);

absl::StatusOr<std::string> EncodeGreyPng(
    int width, int height, int bit_depth,
    absl::FunctionRef<void(int y, uint8_t* row)> fill_row);

}  // namespace sfmamba::base

#endif  // SFMAMBA_TESTS_TESTING_ENCODE_MASKS_H_
