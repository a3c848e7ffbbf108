#ifndef SFMAMBA_TESTS_TESTING_ENCODE_MASKS_H_
#define SFMAMBA_TESTS_TESTING_ENCODE_MASKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mask.h"

// These functions encode a whole mask or map in one call. The server encodes
// masks and maps in steps.
namespace sfmamba::base {

// Returns COCO's compressed string of the run lengths `counts`. The function
// follows the definition of the format directly. It does not use the server's
// encoder.
std::string CompressCounts(absl::Span<const int64_t> counts);

// Returns the compressed string of `mask` after a shift by `left` and `top`
// pixels. The mask must lie inside the picture of `height` x `width` pixels.
std::string EncodeRle(const Mask& mask, int left, int top, int height,
                      int width);

// Returns a string for each class 0 .. classes - 1 of a map [height, width] of
// class indices. The string is empty if the class does not occur.
std::vector<std::string> EncodeRlePerClass(const std::vector<uint16_t>& map,
                                           int height, int width, int classes);

absl::StatusOr<std::string> EncodeGreyPng(
    int width, int height, int bit_depth,
    absl::FunctionRef<void(int y, uint8_t* row)> fill_row);

}  // namespace sfmamba::base

#endif  // SFMAMBA_TESTS_TESTING_ENCODE_MASKS_H_
