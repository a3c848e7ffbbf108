#include "server/image/png_decoder.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "png.h"

namespace sfmamba::image {
namespace {

// Rows from one look at the watch to the next.
constexpr int kWatchedRows = 16;

struct Source {
  absl::string_view left;  // Not read yet.
  char message[128] = "";
  bool expired = false;
};

[[noreturn]] void Fail(png_structp png, png_const_charp message) {
  Source* source = static_cast<Source*>(png_get_error_ptr(png));
  snprintf(source->message, sizeof(source->message), "%s", message);
  png_longjmp(png, 1);
}

void IgnoreWarning(png_structp, png_const_charp) {}

void Read(png_structp png, png_bytep target, size_t size) {
  Source* source = static_cast<Source*>(png_get_io_ptr(png));
  if (size > source->left.size()) png_error(png, "it ends too early");
  memcpy(target, source->left.data(), size);
  source->left.remove_prefix(size);
}

// False: source.message says why. Nothing with a destructor may live in here:
// libpng's errors jump out.
bool Decode(png_structp png, png_infop info, Source& source, int width,
            int height, const DecodeWatch& watch, uint8_t* rgb) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_read_fn(png, &source, Read);
  png_set_user_limits(png, width, height);
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_set_benign_errors(png, 0);  // They are errors.
  // All but IHDR, PLTE, tRNS, IDAT and IEND: they could unpack to gigabytes.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, info);
  png_set_strip_16(png);
  png_set_palette_to_rgb(png);
  png_set_expand_gray_1_2_4_to_8(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const size_t stride = size_t{3} * width;
  if (png_get_image_height(png, info) != height ||
      png_get_rowbytes(png, info) != stride) {
    png_error(png, "the rows are not of the expected size");
  }
  for (int pass = 0; pass < passes; ++pass) {
    for (int y = 0; y < height; ++y) {
      png_read_row(png, rgb + stride * y, nullptr);
      if (y % kWatchedRows == 0 && watch.Expired()) {
        source.expired = true;
        return false;
      }
    }
  }
  png_read_end(png, nullptr);
  return true;
}

}  // namespace

absl::Status DecodePng(absl::string_view bytes, int width, int height,
                       const DecodeWatch& watch, uint8_t* rgb) {
  Source source;
  source.left = bytes;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, Fail,
                                           IgnoreWarning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  const bool decoded =
      info != nullptr && Decode(png, info, source, width, height, watch, rgb);
  png_destroy_read_struct(&png, &info, nullptr);
  if (decoded) return absl::OkStatus();
  if (source.expired) return watch.status();
  return absl::InvalidArgumentError(absl::StrCat("PNG: ", source.message));
}

}  // namespace sfmamba::image
