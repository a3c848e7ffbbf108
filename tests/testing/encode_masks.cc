#include "tests/testing/encode_masks.h"

#include "base/coco_rle.h"
#include "base/png_encoder.h"

namespace sfmamba::base {

std::string CompressCounts(absl::Span<const int64_t> counts) {
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t left = i > 2 ? counts[i] - counts[i - 2] : counts[i];
    for (bool more = true; more;) {
      const int group = left & 0x1f;
      left >>= 5;
      more = left != (group & 0x10 ? -1 : 0);
      text.push_back(group + (more ? 0x20 : 0) + 48);
    }
  }
  return text;
}

std::string EncodeRle(const Mask& mask, int left, int top, int height,
                      int width) {
  RleWriter rle;
  for (int x = 0; x < mask.width; ++x) {
    const int64_t column =
        int64_t{1} * (left + mask.left + x) * height + top + mask.top;
    for (int y = 0; y < mask.height; ++y) {
      if (mask.data[size_t{1} * y * mask.width + x] == 0) continue;
      rle.Add(column + y, column + y + 1);
    }
  }
  return rle.Finish(int64_t{1} * height * width);
}

std::vector<std::string> EncodeRlePerClass(const std::vector<uint16_t>& map,
                                           int height, int width, int classes) {
  ClassRunLengths runs(height, width, classes);
  runs.AddColumns(width, map);
  std::vector<std::string> strings(classes);
  for (int i = 0; i < classes; ++i) strings[i] = runs.Take(i);
  return strings;
}

absl::StatusOr<std::string> EncodeGreyPng(
    int width, int height, int bit_depth,
    absl::FunctionRef<void(int, uint8_t*)> fill_row) {
  GreyPngEncoder encoder(width, height, bit_depth);
  const absl::Status status = encoder.AddRows(height, fill_row);
  if (!status.ok()) return status;
  return encoder.Take();
}

}  // namespace sfmamba::base
