#include "base/png_decoder.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "png.h"

namespace sfmamba::base {
namespace {

// Whether the DecodeWatch has expired is checked after kWatchedRows rows and
// after kWatchedBytes bytes of the file. Bytes count too, because libpng
// decompresses all data after the last row.
constexpr int kWatchedRows = 16;
constexpr size_t kWatchedBytes = 8 << 10;

// Bytes of a chunk besides its data: its length, type and CRC.
constexpr size_t kChunkFrame = 12;

constexpr absl::string_view kEnd("\0\0\0\0IEND\xAE\x42\x60\x82", 12);

// Gives libpng the bytes of a file without the chunks that no pixel needs.
struct Source {
  absl::string_view chunk;  // The rest of the current chunk or signature.
  absl::string_view left;   // The chunks after the current chunk.
  bool palette = false;     // True if the pixels are indices of PLTE.
  const DecodeWatch& watch;
  size_t unwatched = 0;  // Bytes read since the last check of `watch`.
  char message[128] = "";
  bool expired = false;
};

[[noreturn]] void Fail(png_structp png, png_const_charp message) {
  Source* source = static_cast<Source*>(png_get_error_ptr(png));
  snprintf(source->message, sizeof(source->message), "%s", message);
  png_longjmp(png, 1);
}

// libpng calls these errors benign and reports them as warnings. They do not
// change any pixel. Warnings that are not listed here may lose pixels.
constexpr absl::string_view kHarmless[] = {
    // Data follow the end of the compressed rows.
    "Extra compressed data",
    // A separate chunk contains extra data.
    "Too many IDAT",
    // There are more rows than the height in the header.
    "Too much image data",
    // A colour that PLTE lacks becomes black.
    "palette index",
};

void Warn(png_structp png, png_const_charp message) {
  const bool is_harmless = std::any_of(
      std::begin(kHarmless), std::end(kHarmless),
      [message](absl::string_view t) { return absl::StrContains(message, t); });
  if (!is_harmless) Fail(png, message);
}

// Sets source.chunk to the next chunk that is needed for decoding. All critical
// chunks are needed, except a palette that the pixels do not use. The end chunk
// is replaced by an end chunk without data, whose CRC is valid.
void TakeChunk(png_structp png, Source& source) {
  do {
    if (source.left.size() < kChunkFrame) png_error(png, "it ends too early");
    const size_t length = BigEndian(source.left, 0, 4);
    if (length > source.left.size() - kChunkFrame) {
      png_error(png, "it ends too early");
    }
    source.chunk = source.left.substr(0, length + kChunkFrame);
    source.left.remove_prefix(source.chunk.size());
  } while (absl::ascii_islower(source.chunk[4]) ||
           (source.chunk.substr(4, 4) == "PLTE" && !source.palette));
  if (source.chunk.substr(4, 4) == "IEND") source.chunk = kEnd;
}

// Copies the next `size` bytes for libpng, which never asks for bytes of two
// chunks at once.
void Read(png_structp png, png_bytep target, size_t size) {
  Source& source = *static_cast<Source*>(png_get_io_ptr(png));
  source.unwatched += size;
  if (source.unwatched >= kWatchedBytes) {
    source.unwatched = 0;
    source.expired = source.watch.Expired();
    if (source.expired) png_error(png, "it takes too long");
  }
  if (source.chunk.empty()) TakeChunk(png, source);
  if (size > source.chunk.size()) png_error(png, "a chunk ends too early");
  memcpy(target, source.chunk.data(), size);
  source.chunk.remove_prefix(size);
}

// Reads a PNG with libpng. Each method that returns a bool returns false on an
// error. libpng reports an error with longjmp, so no object with a destructor
// may be alive in these methods while they call libpng.
class Reader {
 public:
  // The file must have a header that ReadImageHeader() accepts. `watch` must
  // outlive the reader.
  Reader(absl::string_view bytes, const DecodeWatch& watch)
      : source_{{}, {}, false, watch} {
    constexpr size_t kSignatureBytes = 8, kColorType = 25;
    source_.chunk = bytes.substr(0, kSignatureBytes);
    source_.left = bytes.substr(kSignatureBytes);
    source_.palette = bytes[kColorType] == PNG_COLOR_TYPE_PALETTE;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, Fail, Warn);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Reads the chunks before the pixels. `width` and `height` must equal the
  // header's.
  bool ReadInfo(int width, int height) {
    if (info_ == nullptr) return false;
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_read_fn(png_, &source_, Read);
    png_set_user_limits(png_, width, height);
    png_set_benign_errors(png_, 1);  // Benign errors go to Warn().
    png_read_info(png_, info_);
    return true;
  }

  int color_type() const { return png_get_color_type(png_, info_); }
  int bit_depth() const { return png_get_bit_depth(png_, info_); }

  // Reads `height` rows of `width` pixels, 3 bytes each.
  bool ReadRgb(int width, int height, uint8_t* rgb) {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_strip_16(png_);
    png_set_palette_to_rgb(png_);
    png_set_expand_gray_1_2_4_to_8(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    return ReadRows(height, size_t{3} * width, rgb);
  }

  // Reads `height` rows of `stride` bytes, which are grey samples as stored. A
  // sample has one byte, or two bytes with the high byte first.
  bool ReadGrey(int height, size_t stride, uint8_t* rows) {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_packing(png_);
    return ReadRows(height, stride, rows);
  }

  bool expired() const { return source_.expired; }

  // Returns INVALID_ARGUMENT with the reason why a method returned false.
  absl::Status error() const {
    return absl::InvalidArgumentError(absl::StrCat("PNG: ", source_.message));
  }

 private:
  // Reads rows for the methods above. The caller must have called setjmp,
  // because libpng reports an error with longjmp.
  bool ReadRows(int height, size_t stride, uint8_t* rows) {
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_image_height(png_, info_) != height ||
        png_get_rowbytes(png_, info_) != stride) {
      png_error(png_, "the rows are not of the expected size");
    }
    for (int pass = 0; pass < passes; ++pass) {
      for (int y = 0; y < height; ++y) {
        png_read_row(png_, rows + stride * y, nullptr);
        if (y % kWatchedRows == 0 && source_.watch.Expired()) {
          source_.expired = true;
          return false;
        }
      }
    }
    png_read_end(png_, nullptr);
    return true;
  }

  Source source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

absl::Status DecodePng(absl::string_view bytes, int width, int height,
                       const DecodeWatch& watch, uint8_t* rgb) {
  Reader reader(bytes, watch);
  if (reader.ReadInfo(width, height) && reader.ReadRgb(width, height, rgb)) {
    return absl::OkStatus();
  }
  return reader.expired() ? watch.status() : reader.error();
}

absl::StatusOr<GreyPng> DecodeGreyPng(absl::string_view bytes,
                                      const ImageLimits& limits) {
  const absl::StatusOr<ImageHeader> header = ReadImageHeader(bytes, limits);
  if (!header.ok()) return header.status();
  if (header->format != ImageFormat::kPng) {
    return absl::InvalidArgumentError("not a PNG");
  }
  const DecodeWatch unlimited;
  Reader reader(bytes, unlimited);
  if (!reader.ReadInfo(header->width, header->height)) return reader.error();
  if (reader.color_type() != PNG_COLOR_TYPE_GRAY) {
    return absl::InvalidArgumentError(
        absl::StrCat("PNG: colour type ", reader.color_type(),
                     ", expected 0: grey without alpha"));
  }
  GreyPng grey;
  grey.width = header->width;
  grey.height = header->height;
  grey.bit_depth = reader.bit_depth();
  const int sample_bytes = grey.bit_depth == 16 ? 2 : 1;
  const size_t stride = size_t{1} * sample_bytes * grey.width;
  std::vector<uint8_t> rows(stride * grey.height);
  if (!reader.ReadGrey(grey.height, stride, rows.data())) {
    return reader.error();
  }
  if (sample_bytes == 1) {
    grey.data.assign(rows.begin(), rows.end());
    return grey;
  }
  grey.data.resize(rows.size() / 2);
  for (size_t i = 0; i < grey.data.size(); ++i) {
    grey.data[i] = rows[2 * i] << 8 | rows[2 * i + 1];
  }
  return grey;
}

}  // namespace sfmamba::base
