#include "server/image/png_encoder.h"

#include <cstdio>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "png.h"

namespace sfmamba::image {
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

void Write(png_structp png, png_bytep bytes, size_t size) {
  static_cast<Target*>(png_get_io_ptr(png))
      ->bytes.append(reinterpret_cast<const char*>(bytes), size);
}

void Flush(png_structp) {}

// False: target.message says why. Nothing with a destructor may live in here:
// libpng's errors jump out.
bool Encode(png_structp png, png_infop info, Target& target, int width,
            int height, int bit_depth,
            absl::FunctionRef<void(int, uint8_t*)> fill_row, uint8_t* row) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_write_fn(png, &target, Write, Flush);
  png_set_compression_level(png, 1);
  png_set_compression_buffer_size(png, kChunkBytes);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  png_set_IHDR(png, info, width, height, bit_depth, PNG_COLOR_TYPE_GRAY,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
               PNG_FILTER_TYPE_BASE);
  png_write_info(png, info);
  for (int y = 0; y < height; ++y) {
    fill_row(y, row);
    png_write_row(png, row);
  }
  png_write_end(png, nullptr);
  return true;
}

}  // namespace

absl::StatusOr<std::string> EncodeGreyPng(
    int width, int height, int bit_depth,
    absl::FunctionRef<void(int, uint8_t*)> fill_row) {
  Target target;
  std::vector<uint8_t> row((size_t{1} * width * bit_depth + 7) / 8);
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &target,
                                            Fail, IgnoreWarning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  const bool encoded =
      info != nullptr &&
      Encode(png, info, target, width, height, bit_depth, fill_row, row.data());
  png_destroy_write_struct(&png, &info);
  if (encoded) return std::move(target.bytes);
  return absl::InternalError(absl::StrCat("PNG: ", target.message));
}

}  // namespace sfmamba::image
