#include "base/orientation.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/match.h"
#include "base/bytes.h"

namespace sfmamba::base {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kTiffShort = 3;

}  // namespace

// Source: TIFF 6.0, section 2; EXIF 2.3, section 4.6.
int ExifOrientation(absl::string_view tiff) {
  if (tiff.size() < 8) return 1;
  const bool little = absl::StartsWith(tiff, "II");
  if (!little && !absl::StartsWith(tiff, "MM")) return 1;
  const auto read = little ? LittleEndian : BigEndian;
  const uint64_t directory = read(tiff, 4, 4);
  if (read(tiff, 2, 2) != 42 || directory + 2 > tiff.size()) return 1;
  const int entries = read(tiff, directory, 2);
  for (int i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + 12 * i;
    if (entry + 12 > tiff.size()) return 1;
    if (read(tiff, entry, 2) != kOrientationTag) continue;
    const uint32_t value = read(tiff, entry + 8, 2);
    const bool valid = read(tiff, entry + 2, 2) == kTiffShort &&
                       read(tiff, entry + 4, 4) == 1 && value >= 1 &&
                       value <= 8;
    return valid ? value : 1;
  }
  return 1;
}

// Source: EXIF 2.3, Orientation: where the stored first row and column belong.
RgbImage Orient(RgbImage stored, int orientation) {
  if (orientation <= 1 || orientation > 8) return stored;
  const bool swap_sides = SwapsSides(orientation);
  const bool flip_x = orientation == 2 || orientation == 3 ||
                      orientation == 7 || orientation == 8;
  const bool flip_y = orientation == 3 || orientation == 4 ||
                      orientation == 6 || orientation == 7;
  RgbImage seen;
  seen.width = swap_sides ? stored.height : stored.width;
  seen.height = swap_sides ? stored.width : stored.height;
  seen.data.resize(stored.data.size());
  uint8_t* out = seen.data.data();
  for (int y = 0; y < seen.height; ++y) {
    for (int x = 0; x < seen.width; ++x, out += 3) {
      const int across = swap_sides ? y : x;  // In the stored picture.
      const int down = swap_sides ? x : y;
      const size_t column = flip_x ? stored.width - 1 - across : across;
      const size_t row = flip_y ? stored.height - 1 - down : down;
      memcpy(out, &stored.data[3 * (row * stored.width + column)], 3);
    }
  }
  return seen;
}

}  // namespace sfmamba::base
