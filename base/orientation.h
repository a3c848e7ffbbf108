#ifndef SFMAMBA_BASE_ORIENTATION_H_
#define SFMAMBA_BASE_ORIENTATION_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "base/rgb_image.h"

namespace sfmamba::base {

// Returns the orientation, 1..8, in an EXIF block. The block is a TIFF
// structure, optionally after "Exif\0\0". Returns 1 if the structure has no
// orientation or is corrupt. Returns nullopt if `block` does not begin with a
// TIFF structure. If a file has several blocks, callers use the first result
// that is not nullopt.
std::optional<int> ExifOrientation(absl::string_view block);

// Returns true if the orientation rotates the picture by 90 or 270 degrees.
inline bool SwapsSides(int orientation) { return orientation >= 5; }

// Returns the picture as it should be seen, after rotating and mirroring
// `stored`. `orientation` is EXIF's, 1..8.
RgbImage Orient(RgbImage stored, int orientation);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_ORIENTATION_H_
