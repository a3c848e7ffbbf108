#include "base/orientation.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/bytes.h"

namespace sfmamba::base {
namespace {

constexpr absl::string_view kExifMagic("Exif\0\0", 6);
constexpr uint32_t kOrientationTag = 0x0112;

// Returns the number of bytes of a TIFF type, or 0 unless the type is an
// unsigned integer.
int IntegerBytes(uint32_t type) {
  switch (type) {
    case 1:  // BYTE
      return 1;
    case 3:  // SHORT
      return 2;
    case 4:  // LONG
      return 4;
  }
  return 0;
}

}  // namespace

// Source: TIFF 6.0, section 2; EXIF 2.3, section 4.6.
std::optional<int> ExifOrientation(absl::string_view block) {
  absl::ConsumePrefix(&block, kExifMagic);
  const bool little = absl::StartsWith(block, "II");
  if (block.size() < 8 || (!little && !absl::StartsWith(block, "MM"))) {
    return std::nullopt;
  }
  const auto read = little ? LittleEndian : BigEndian;
  if (read(block, 2, 2) != 42) return std::nullopt;
  const uint64_t directory = read(block, 4, 4);
  if (directory + 2 > block.size()) return 1;
  const int entries = read(block, directory, 2);
  for (int i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + 12 * i;
    if (entry + 12 > block.size()) return 1;
    if (read(block, entry, 2) != kOrientationTag) continue;
    const int bytes = IntegerBytes(read(block, entry + 2, 2));
    if (bytes == 0 || read(block, entry + 4, 4) != 1) return 1;
    const uint32_t value = read(block, entry + 8, bytes);
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

// Source: EXIF 2.3, Orientation, which says where the stored first row and
// first column belong in the picture.
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
