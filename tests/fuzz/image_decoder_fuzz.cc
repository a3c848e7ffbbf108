// Fuzzes JPEG, PNG and WebP files. A file must be refused with a reason, or
// become a picture of the size in its header. A JPEG that is resized during
// decoding must give the same input as a JPEG that is resized afterwards.
#include <algorithm>
#include <cstdint>

#include "base/image_decoder.h"
#include "server/errors/error.h"
#include "server/image/image.h"
#include "tests/fuzz/check.h"

namespace sfmamba {
namespace {

constexpr int kMaxPixels = 1 << 14;

image::ImageLimits SmallLimits() {
  image::ImageLimits limits;
  limits.max_bytes = 1 << 16;
  limits.max_pixels = kMaxPixels;
  limits.max_side = 1 << 12;
  return limits;
}

void CheckRefused(const absl::Status& status) {
  Check(status.code() == absl::StatusCode::kInvalidArgument,
        "a file is refused as an invalid argument");
  Check(!server::GetErrorDetail(status).reason.empty(), "with a reason");
}

void Decode(absl::string_view file, bool apply_orientation, int min_side) {
  const image::ImageLimits limits = SmallLimits();
  const absl::StatusOr<image::ImageHeader> header =
      base::ReadImageHeader(file, limits);
  const absl::StatusOr<image::RgbImage> decoded =
      base::DecodeImage(file, limits, apply_orientation, min_side,
                        image::DecodeWatch(absl::Seconds(1)));
  if (!decoded.ok()) {
    return CheckRefused(image::DecodeError(decoded.status()));
  }
  Check(header.ok(), "what is decoded has a header");
  Check(decoded->data.size() == size_t{3} * decoded->width * decoded->height,
        "a picture is whole");
  const image::PictureSize size =
      image::OrientedSize(*header, apply_orientation);
  if (min_side == 0) {
    Check(decoded->width == size.width && decoded->height == size.height,
          "a picture has its header's size");
  } else {
    Check(decoded->width <= size.width && decoded->height <= size.height,
          "a scaled picture is not larger");
    Check(std::min(decoded->width, decoded->height) >=
              std::min({size.width, size.height, min_side}),
          "nor smaller than was asked");
  }
}

void ResizeByRow(absl::string_view file, image::ResizeMode mode) {
  const image::ImageLimits limits = SmallLimits();
  const absl::StatusOr<image::ImageHeader> header =
      base::ReadImageHeader(file, limits);
  if (!header.ok() ||
      !base::ComesInRows(*header, /*apply_orientation=*/false)) {
    return;
  }
  constexpr int kSide = 12;
  const image::PreprocessOptions options = {kSide, kSide + 2, mode};
  const image::DecodeWatch watch;
  const absl::StatusOr<image::RgbImage> decoded = base::DecodeImage(
      file, limits, /*apply_orientation=*/false, kSide, watch);
  const absl::StatusOr<image::RowsInput> by_row =
      image::DecodeAndPreprocess(file, *header, kSide, options, watch);
  Check(decoded.ok() == by_row.ok(), "both ways take a file, or neither");
  if (!decoded.ok()) return CheckRefused(by_row.status());
  const absl::StatusOr<image::ImageBuffer> resized =
      image::Preprocess(*decoded, options, watch);
  Check(resized.ok() && resized->pixels == by_row->image.pixels,
        "both ways give the same input");
}

}  // namespace
}  // namespace sfmamba

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view file = sfmamba::Input(data, size).bytes();
  sfmamba::Decode(file, /*apply_orientation=*/true, /*min_side=*/0);
  sfmamba::Decode(file, /*apply_orientation=*/false, /*min_side=*/5);
  sfmamba::ResizeByRow(file, sfmamba::image::ResizeMode::kCenterCrop);
  sfmamba::ResizeByRow(file, sfmamba::image::ResizeMode::kLetterbox);
  return 0;
}
