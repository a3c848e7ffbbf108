#ifndef SFMAMBA_BASE_ORIENTATION_H_
#define SFMAMBA_BASE_ORIENTATION_H_

#include "absl/strings/string_view.h"
#include "base/rgb_image.h"

namespace sfmamba::base {

// Returns the orientation, 1..8, in an EXIF block, which is a TIFF structure.
// It is 1 if there is none or the block is corrupt.
int ExifOrientation(absl::string_view tiff);

// Whether an orientation turns the picture by a quarter.
inline bool SwapsSides(int orientation) { return orientation >= 5; }

// Returns the stored picture as it is to be seen. `orientation` is
// EXIF's, 1..8.
RgbImage Orient(RgbImage stored, int orientation);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_ORIENTATION_H_
