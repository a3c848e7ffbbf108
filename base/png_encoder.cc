#include "base/png_encoder.h"

#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "png.h"

namespace sfmamba::base {
namespace {

// Of compressed data that libpng collects before it writes a chunk.
constexpr int kChunkBytes = 64 << 10;

struct Target {
  std::string bytes;
  char message[128] = "";
};

[[noreturn]] void Fail(png_structp png, png_const_charp message) {
  Target* target = static_cast<Target*>(png_get_error_ptr(png));
  snprintf(target->message, sizeof(target->message), "%s", message);
  png_longjmp(png, 1);
}

void IgnoreWarning(png_structp, png_const_charp) {}

void Append(png_structp png, png_bytep bytes, size_t size) {
  static_cast<Target*>(png_get_io_ptr(png))
      ->bytes.append(reinterpret_cast<const char*>(bytes), size);
}

void Flush(png_structp) {}

struct Format {
  int width;
  int height;
  int bit_depth;
  int color_type;
  bool fastest;  // Weakest compression and no filter; else libpng's choice.
};

// False: target.message says why. Nothing with a destructor may live in here:
// libpng's errors jump out.
bool Write(png_structp png, png_infop info, Target& target,
           const Format& format, absl::FunctionRef<const uint8_t*(int)> row) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_write_fn(png, &target, Append, Flush);
  if (format.fastest) {
    png_set_compression_level(png, 1);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  }
  png_set_compression_buffer_size(png, kChunkBytes);
  png_set_IHDR(png, info, format.width, format.height, format.bit_depth,
               format.color_type, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
               PNG_FILTER_TYPE_BASE);
  png_write_info(png, info);
  for (int y = 0; y < format.height; ++y) png_write_row(png, row(y));
  png_write_end(png, nullptr);
  return true;
}

// A PNG whose row y is what `row` returns of it, as the file holds it.
absl::StatusOr<std::string> Encode(const Format& format,
                                   absl::FunctionRef<const uint8_t*(int)> row) {
  Target target;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &target,
                                            Fail, IgnoreWarning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  const bool encoded = info != nullptr && Write(png, info, target, format, row);
  png_destroy_write_struct(&png, &info);
  if (encoded) return std::move(target.bytes);
  return absl::InternalError(absl::StrCat("PNG: ", target.message));
}

}  // namespace

absl::StatusOr<std::string> EncodeGreyPng(
    int width, int height, int bit_depth,
    absl::FunctionRef<void(int, uint8_t*)> fill_row) {
  std::vector<uint8_t> row((size_t{1} * width * bit_depth + 7) / 8);
  return Encode(
      {width, height, bit_depth, PNG_COLOR_TYPE_GRAY, /*fastest=*/true},
      [&](int y) {
        fill_row(y, row.data());
        return row.data();
      });
}

absl::StatusOr<std::string> EncodeRgbPng(const RgbImage& image) {
  if (image.width <= 0 || image.height <= 0) {
    return absl::InvalidArgumentError("PNG: a picture without pixels");
  }
  return Encode(
      {image.width, image.height, /*bit_depth=*/8, PNG_COLOR_TYPE_RGB,
       /*fastest=*/false},
      [&](int y) { return &image.data[size_t{3} * y * image.width]; });
}

}  // namespace sfmamba::base
