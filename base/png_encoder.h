#ifndef SFMAMBA_BASE_PNG_ENCODER_H_
#define SFMAMBA_BASE_PNG_ENCODER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/rgb_image.h"

namespace sfmamba::base {

// This class is defined in png_encoder.cc.
class PngWriter;

// Encodes a grey PNG some rows at a time. With 8 or 16 bits, it uses zlib's
// fastest compression and no filter, which is good for maps of few values. With
// 1 bit, it subtracts the row above and compresses only runs, which is good for
// masks. Thread-compatible.
class GreyPngEncoder {
 public:
  // `width` and `height` must be positive. `bit_depth` must be 1, 8 or 16.
  GreyPngEncoder(int width, int height, int bit_depth);
  ~GreyPngEncoder();

  // Encodes the next `rows` rows, or the remaining ones if there are fewer.
  // `fill_row` writes row `y` to `row` in the file's layout. At bit depth 1, a
  // byte holds 8 pixels, the leftmost in the highest bit. At 8, a pixel has one
  // byte. At 16, it has two bytes, the high byte first. `fill_row` must not
  // throw. Returns INTERNAL if libpng fails.
  absl::Status AddRows(int rows,
                       absl::FunctionRef<void(int y, uint8_t* row)> fill_row);

  bool done() const;
  int64_t bytes() const;  // The size of the file so far.
  // Returns the file. May be called only once, when done() is true.
  std::string Take();

 private:
  const std::unique_ptr<PngWriter> writer_;
  std::vector<uint8_t> row_;
};

// Encodes `image` as an 8-bit RGB PNG with libpng's default compression.
// Returns INVALID_ARGUMENT if the image has no pixels, and INTERNAL if libpng
// fails.
absl::StatusOr<std::string> EncodeRgbPng(const RgbImage& image);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_PNG_ENCODER_H_
