#include "server/prediction/expected_costs.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/string_view.h"

namespace sfmamba::prediction {
namespace {

// The weight of the newest measurement in the moving average.
constexpr double kWeight = 0.1;
// If the expected time of work is shorter than kShortest, the measurement of
// this work is ignored.
constexpr absl::Duration kShortest = absl::Microseconds(50);

// The name of an image format, and the time to decode and resize one pixel of a
// photograph in this format. The times were measured with
// tests/server/image:image_benchmark on a core with AVX-512.
struct Format {
  absl::string_view name;
  absl::Duration per_pixel;
};
constexpr Format kFormats[] = {
    {"jpeg", absl::Nanoseconds(6)},   {"png", absl::Nanoseconds(25)},
    {"webp", absl::Nanoseconds(29)},  {"pixels", absl::Nanoseconds(3)},
    {"tensor", absl::Nanoseconds(2)},  // A tensor is only copied.
};

// The expected time to create one byte of a part's model input from the decoded
// picture. Used only if an image is divided into parts, for example into tiles.
constexpr absl::Duration kPerPartByte = absl::Nanoseconds(1);

// Returns the index of the image's format in kFormats. If the format is
// unknown, returns the last index. This is harmless, because a file of unknown
// format is never decoded.
int FormatOf(const ImageFacts& image) {
  const auto found = std::find_if(
      std::begin(kFormats), std::end(kFormats) - 1,
      [&image](const Format& format) { return format.name == image.format; });
  return static_cast<int>(found - std::begin(kFormats));
}

}  // namespace

void LearnedFactor::Add(absl::Duration expected, absl::Duration measured) {
  if (expected < kShortest) return;
  const double mean = value();
  const double factor =
      std::min(absl::FDivDuration(measured, expected), 4 * mean);
  value_.store(std::clamp(mean + kWeight * (factor - mean), 0.25, 4.0),
               std::memory_order_relaxed);
}

absl::Duration ExpectedCosts::Decode(const ImageFacts& image) const {
  const int format = FormatOf(image);
  const absl::Duration decode =
      image.pixels * kFormats[format].per_pixel * formats_[format].value();
  if (image.parts.empty()) return decode;
  return decode + image.input_bytes * kPerPartByte;
}

void ExpectedCosts::Decoded(const ImageFacts& image, absl::Duration took) {
  const int format = FormatOf(image);
  formats_[format].Add(image.pixels * kFormats[format].per_pixel, took);
}

}  // namespace sfmamba::prediction
