// Fuzzes the headers of picture files. An accepted header must be within the
// limits. A refused one must have a reason.
#include <cstdint>

#include "base/image_header.h"
#include "server/errors/error.h"
#include "server/image/image.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using sfmamba::Check;
  namespace base = sfmamba::base;
  namespace image = sfmamba::image;
  const absl::string_view file = sfmamba::Input(data, size).bytes();
  image::ImageLimits limits;
  limits.max_bytes = 1 << 20;
  const absl::StatusOr<image::ImageHeader> header =
      base::ReadImageHeader(file, limits);
  if (!header.ok()) {
    const absl::Status status = image::DecodeError(header.status());
    Check(status.code() == absl::StatusCode::kInvalidArgument,
          "a file is refused as an invalid argument");
    Check(!sfmamba::server::GetErrorDetail(status).reason.empty(),
          "with a reason");
    return 0;
  }
  Check(header->width > 0 && header->width <= limits.max_side, "width");
  Check(header->height > 0 && header->height <= limits.max_side, "height");
  Check(int64_t{1} * header->width * header->height <= limits.max_pixels,
        "pixels");
  Check(header->orientation >= 1 && header->orientation <= 8, "orientation");
  return 0;
}
