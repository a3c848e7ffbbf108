#ifndef SFMAMBA_BASE_ORIENTATION_H_
#define SFMAMBA_BASE_ORIENTATION_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "base/rgb_image.h"

namespace sfmamba::base {

// Returns the orientation, 1..8, in an EXIF block: a TIFF structure, which may
// have "Exif\0\0" before it. It is 1 if the block has none or is corrupt, and
// unset if no TIFF structure begins there. Of a file's blocks the first that
// has a value decides.
std::optional<int> ExifOrientation(absl::string_view block);

// Whether an orientation turns the picture by a quarter.
inline bool SwapsSides(int orientation) { return orientation >= 5; }

// Returns the stored picture as it is to be seen. `orientation` is
// EXIF's, 1..8.
RgbImage Orient(RgbImage stored, int orientation);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_ORIENTATION_H_
