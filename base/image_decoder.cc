#include "base/image_decoder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/jpeg_decoder.h"
#include "base/orientation.h"
#include "base/png_decoder.h"
#include "base/webp_decoder.h"

namespace sfmamba::base {
namespace {

// The heap adds at most this many bytes to an allocation.
constexpr int64_t kHeapBlock = 64;

int ScaledSide(int side, int eighths) { return (side * eighths + 7) / 8; }

// Returns, in eighths, the smallest scale that leaves both sides at least
// `min_side` pixels long. Only 1, 2, 4 and 8 eighths are used, because
// libjpeg-turbo has vector instructions for them. Without these instructions,
// 3/8 takes longer than 4/8, and 5/8 or more takes longer than full size. Only
// a JPEG is scaled. For other pictures the result is 8.
int Scale(const ImageHeader& header, int min_side) {
  if (header.format != ImageFormat::kJpeg || min_side <= 0) return 8;
  const int side = std::min(header.width, header.height);
  int eighths = 1;
  while (eighths < 8 && ScaledSide(side, eighths) < min_side) eighths *= 2;
  return eighths;
}

}  // namespace

DecodeNeeds NeedsOf(const ImageHeader& header, bool apply_orientation,
                    int min_side) {
  const int eighths = Scale(header, min_side);
  DecodeNeeds needs;
  needs.width = ScaledSide(header.width, eighths);
  needs.height = ScaledSide(header.height, eighths);
  const int64_t picture = int64_t{3} * needs.width * needs.height + kHeapBlock;
  const bool turned = apply_orientation && header.orientation != 1;
  needs.bytes = picture + std::max(header.decoder_bytes, turned ? picture : 0);
  if (turned && SwapsSides(header.orientation)) {
    std::swap(needs.width, needs.height);
  }
  return needs;
}

absl::StatusOr<RgbImage> DecodeImage(absl::string_view bytes,
                                     const ImageLimits& limits,
                                     bool apply_orientation, int min_side,
                                     const DecodeWatch& watch,
                                     RowsDecoded decoded) {
  const absl::StatusOr<ImageHeader> header = ReadImageHeader(bytes, limits);
  if (!header.ok()) return header.status();
  const int eighths = Scale(*header, min_side);
  RgbImage image;
  image.width = ScaledSide(header->width, eighths);
  image.height = ScaledSide(header->height, eighths);
  image.data.resize(size_t{3} * image.width * image.height);
  const bool in_rows = ComesInRows(*header, apply_orientation);
  absl::Status status;
  switch (header->format) {
    case ImageFormat::kJpeg:
      status = DecodeJpeg(bytes, eighths, image.width, image.height,
                          header->decoder_bytes, watch, [&](int y) {
                            if (in_rows) decoded(image, y);
                            return &image.data[size_t{3} * image.width * y];
                          });
      break;
    case ImageFormat::kPng:
      status =
          DecodePng(bytes, image.width, image.height, watch, image.data.data());
      break;
    case ImageFormat::kWebp:
      status = DecodeWebp(bytes, watch, image);
      break;
  }
  if (!status.ok()) return status;
  if (apply_orientation) image = Orient(std::move(image), header->orientation);
  if (watch.Expired()) return watch.status();
  return image;
}

bool ComesInRows(const ImageHeader& header, bool apply_orientation) {
  return header.format == ImageFormat::kJpeg &&
         (!apply_orientation || header.orientation == 1);
}

absl::Status DecodeRows(absl::string_view bytes, const ImageHeader& header,
                        int min_side, const DecodeWatch& watch, RowPlace row) {
  const int eighths = Scale(header, min_side);
  const absl::Status status = DecodeJpeg(
      bytes, eighths, ScaledSide(header.width, eighths),
      ScaledSide(header.height, eighths), header.decoder_bytes, watch, row);
  if (status.ok() && watch.Expired()) return watch.status();
  return status;
}

}  // namespace sfmamba::base
