#include "base/webp_decoder.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "webp/decode.h"

namespace sfmamba::base {
namespace {

// The file is decoded in parts. After each part, the decoder checks whether the
// DecodeWatch has expired. There are about kWatchedParts parts, because a few
// bytes may hold many pixels. A part has at most kWatchedBytes bytes, so a
// large file has more parts. A tiny file has fewer parts.
constexpr size_t kWatchedParts = 64, kWatchedBytes = 64 << 10;

// Returns true if the file has as many bytes as its header says.
bool IsWhole(absl::string_view bytes) {
  return LittleEndian(bytes, 4, 4) <= bytes.size() - 8;
}

}  // namespace

absl::Status DecodeWebp(absl::string_view bytes, const DecodeWatch& watch,
                        RgbImage& image) {
  const std::unique_ptr<WebPIDecoder, void (*)(WebPIDecoder*)> decoder(
      WebPINewRGB(MODE_RGB, image.data.data(), image.data.size(),
                  3 * image.width),
      WebPIDelete);
  // The length is checked here, because the incremental decoder does not notice
  // that the last byte of a file is missing.
  VP8StatusCode code =
      IsWhole(bytes) ? VP8_STATUS_SUSPENDED : VP8_STATUS_NOT_ENOUGH_DATA;
  const size_t step =
      std::clamp<size_t>(bytes.size() / kWatchedParts, 16, kWatchedBytes);
  for (size_t end = 0; code == VP8_STATUS_SUSPENDED && end < bytes.size();) {
    end = std::min(end + step, bytes.size());
    code =
        decoder == nullptr
            ? VP8_STATUS_OUT_OF_MEMORY
            : WebPIUpdate(decoder.get(),
                          reinterpret_cast<const uint8_t*>(bytes.data()), end);
    if (watch.Expired()) return watch.status();
  }
  if (code == VP8_STATUS_OK) return absl::OkStatus();
  return absl::InvalidArgumentError("WebP: the data are truncated or corrupt");
}

}  // namespace sfmamba::base
