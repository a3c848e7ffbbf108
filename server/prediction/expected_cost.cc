#include "server/prediction/expected_cost.h"

namespace sfmamba::prediction {
namespace {

// Time to decode and resize one pixel of a photograph, measured with
// tests/server/image:image_benchmark on a core with AVX-512.
absl::Duration PerPixel(absl::string_view format) {
  if (format == "jpeg") return absl::Nanoseconds(6);
  if (format == "png") return absl::Nanoseconds(25);
  if (format == "webp") return absl::Nanoseconds(29);
  if (format == "pixels") return absl::Nanoseconds(3);
  return absl::Nanoseconds(2);  // A tensor is only copied.
}

}  // namespace

absl::Duration ExpectedDecode(const ImageFacts& image) {
  return image.pixels * PerPixel(image.format);
}

}  // namespace sfmamba::prediction
