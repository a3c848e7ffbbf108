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

class PngWriter;  // In png_encoder.cc.

// Encodes a grey PNG of `bit_depth` 1, 8 or 16 some rows at a time, with zlib's
// fastest compression and no filter, which suits maps of few values. Pictures
// of one bit are filtered by the row above and compressed by their runs alone,
// which suits masks. Thread-compatible.
class GreyPngEncoder {
 public:
  // The sides are positive.
  GreyPngEncoder(int width, int height, int bit_depth);
  ~GreyPngEncoder();

  // Adds the next `rows` rows, or those that are left. `fill_row` writes row
  // `y` as the file holds it: 8 pixels a byte, the leftmost in the highest bit,
  // a byte a pixel, or two, the high byte first. It must not throw. INTERNAL if
  // libpng fails.
  absl::Status AddRows(int rows,
                       absl::FunctionRef<void(int y, uint8_t* row)> fill_row);

  bool done() const;
  int64_t bytes() const;  // Encoded so far.
  std::string Take();     // The file; once, when done().

 private:
  const std::unique_ptr<PngWriter> writer_;
  std::vector<uint8_t> row_;
};

// `image` as an 8-bit RGB PNG, with libpng's usual compression.
// INVALID_ARGUMENT if it has no pixels; INTERNAL if libpng fails.
absl::StatusOr<std::string> EncodeRgbPng(const RgbImage& image);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_PNG_ENCODER_H_
