// Fuzzes COCO run lengths. Any counts must either be rejected or be decoded to
// a mask inside the picture. Masks and class maps that are encoded and decoded
// must not change.
#include <cstdint>
#include <string>
#include <vector>

#include "base/coco_rle.h"
#include "tests/fuzz/check.h"
#include "tests/testing/encode_masks.h"

namespace sfmamba {
namespace {

bool Equal(const base::Mask& a, const base::Mask& b) {
  return a.left == b.left && a.top == b.top && a.width == b.width &&
         a.height == b.height && a.data == b.data;
}

void Decode(absl::string_view counts, int height, int width) {
  const absl::StatusOr<base::Mask> mask =
      base::DecodeRle(counts, height, width, base::ImageLimits());
  if (!mask.ok()) {
    Check(mask.status().code() == absl::StatusCode::kInvalidArgument,
          "counts are refused as an invalid argument");
    return;
  }
  Check(mask->left >= 0 && mask->left + mask->width <= width, "columns");
  Check(mask->top >= 0 && mask->top + mask->height <= height, "rows");
  Check(mask->data.size() == size_t{1} * mask->width * mask->height,
        "a mask is whole");
  const absl::StatusOr<base::Mask> again =
      base::DecodeRle(base::EncodeRle(*mask, 0, 0, height, width), height,
                      width, base::ImageLimits());
  Check(again.ok() && Equal(*mask, *again), "a mask comes back as it was");
}

void RoundTrip(absl::string_view labels, int height, int classes) {
  const int width = labels.size() / height;
  if (width == 0) return;
  std::vector<uint16_t> map(labels.begin(), labels.begin() + height * width);
  // Labels equal to `classes` belong to no class.
  for (uint16_t& label : map) label %= classes + 1;
  const std::vector<std::string> counts =
      base::EncodeRlePerClass(map, height, width, classes);
  std::vector<uint16_t> decoded(map.size(), classes);
  for (int i = 0; i < classes; ++i) {
    if (counts[i].empty()) continue;
    const absl::StatusOr<base::Mask> mask =
        base::DecodeRle(counts[i], height, width, base::ImageLimits());
    Check(mask.ok() && mask->width > 0, "a class's counts are a mask");
    for (int y = 0; y < mask->height; ++y) {
      for (int x = 0; x < mask->width; ++x) {
        if (mask->data[y * mask->width + x] == 0) continue;
        decoded[(mask->top + y) * width + mask->left + x] = i;
      }
    }
  }
  Check(decoded == map, "a map comes back as it was");
}

}  // namespace
}  // namespace sfmamba

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sfmamba::Input input(data, size);
  const bool decode = input.Below(2) == 0;
  const int height = 1 + input.Below(256);
  const int width_or_classes = 1 + input.Below(256);
  if (decode) {
    sfmamba::Decode(input.bytes(), height, width_or_classes);
  } else {
    sfmamba::RoundTrip(input.bytes(), height, width_or_classes);
  }
  return 0;
}
