#include "client/picture/png_codec.h"

#include <cstdio>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "png.h"

namespace sfmamba::client {
namespace {

constexpr absl::string_view kMagicAndIhdr("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR",
                                          16);

absl::Status Error(absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat("PNG: ", message));
}

struct Header {
  int width = 0;
  int height = 0;
  int bit_depth = 0;
  int color_type = 0;
};

// Source: PNG specification (third edition), 11.2.1.
absl::StatusOr<Header> ReadHeader(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, kMagicAndIhdr) || bytes.size() < 33) {
    return Error("no complete header");
  }
  const png_byte* ihdr =
      reinterpret_cast<const png_byte*>(bytes.data()) + kMagicAndIhdr.size();
  const int64_t width = png_get_uint_32(ihdr);
  const int64_t height = png_get_uint_32(ihdr + 4);
  const absl::Status status = CheckPictureSize(width, height);
  if (!status.ok()) return status;
  Header header;
  header.width = width;
  header.height = height;
  header.bit_depth = ihdr[8];
  header.color_type = ihdr[9];
  return header;
}

// The payload of the last EXIF chunk; empty if there is none.
std::string ExifOf(absl::string_view bytes) {
  constexpr size_t kMagic = 8, kFrame = 12;  // Length, type and CRC.
  std::string exif;
  for (size_t at = kMagic; at + kFrame <= bytes.size();) {
    const uint64_t length =
        png_get_uint_32(reinterpret_cast<const png_byte*>(&bytes[at]));
    if (length > bytes.size() - at - kFrame) break;
    if (bytes.substr(at + 4, 4) == "eXIf") {
      exif = std::string(bytes.substr(at + 8, length));
    }
    at += kFrame + length;
  }
  return exif;
}

struct Source {
  absl::string_view left;  // Not read yet.
  char message[128] = "";
};

[[noreturn]] void Fail(png_structp png, png_const_charp message) {
  Source* source = static_cast<Source*>(png_get_error_ptr(png));
  snprintf(source->message, sizeof(source->message), "%s", message);
  png_longjmp(png, 1);
}

void IgnoreWarning(png_structp, png_const_charp) {}

void TakeBytes(png_structp png, png_bytep target, size_t size) {
  Source* source = static_cast<Source*>(png_get_io_ptr(png));
  if (size > source->left.size()) png_error(png, "it ends too early");
  memcpy(target, source->left.data(), size);
  source->left.remove_prefix(size);
}

// libpng's reading state; its errors jump out, so that nothing with a
// destructor may live in Read().
class Reader {
 public:
  explicit Reader(absl::string_view bytes) {
    source_.left = bytes;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, Fail,
                                  IgnoreWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Fills in `height` rows of `stride` bytes; false: message() says why. Grey
  // samples keep their values, one byte each or two, the higher first.
  bool Read(const Header& header, bool grey, size_t stride, uint8_t* rows) {
    if (info_ == nullptr) return false;
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_read_fn(png_, &source_, TakeBytes);
    png_set_user_limits(png_, header.width, header.height);
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_benign_errors(png_, 0);  // They are errors.
    // Other chunks could unpack to gigabytes.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png_, info_);
    if (grey) {
      png_set_packing(png_);
    } else {
      png_set_strip_16(png_);
      png_set_palette_to_rgb(png_);
      png_set_expand_gray_1_2_4_to_8(png_);
      png_set_gray_to_rgb(png_);
      png_set_strip_alpha(png_);
    }
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != stride) {
      png_error(png_, "the rows are not of the expected size");
    }
    for (int pass = 0; pass < passes; ++pass) {
      for (int y = 0; y < header.height; ++y) {
        png_read_row(png_, rows + stride * y, nullptr);
      }
    }
    png_read_end(png_, nullptr);
    return true;
  }

  const char* message() const { return source_.message; }

 private:
  Source source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

absl::StatusOr<Picture> ReadRgbPng(absl::string_view bytes, std::string* exif) {
  const absl::StatusOr<Header> header = ReadHeader(bytes);
  if (!header.ok()) return header.status();
  Picture picture;
  picture.width = header->width;
  picture.height = header->height;
  const size_t stride = size_t{3} * picture.width;
  picture.data.resize(stride * picture.height);
  Reader reader(bytes);
  if (!reader.Read(*header, /*grey=*/false, stride, picture.data.data())) {
    return Error(reader.message());
  }
  *exif = ExifOf(bytes);
  return picture;
}

absl::StatusOr<GreyPng> ReadGreyPng(absl::string_view bytes) {
  const absl::StatusOr<Header> header = ReadHeader(bytes);
  if (!header.ok()) return header.status();
  if (header->color_type != PNG_COLOR_TYPE_GRAY) {
    return Error(absl::StrCat("colour type ", header->color_type,
                              ", expected 0: grey without alpha"));
  }
  const int sample_bytes = header->bit_depth == 16 ? 2 : 1;
  const size_t stride = size_t{1} * sample_bytes * header->width;
  std::vector<uint8_t> rows(stride * header->height);
  Reader reader(bytes);
  if (!reader.Read(*header, /*grey=*/true, stride, rows.data())) {
    return Error(reader.message());
  }
  GreyPng grey;
  grey.width = header->width;
  grey.height = header->height;
  grey.bit_depth = header->bit_depth;
  if (sample_bytes == 1) {
    grey.data.assign(rows.begin(), rows.end());
  } else {
    grey.data.resize(rows.size() / 2);
    for (size_t i = 0; i < grey.data.size(); ++i) {
      grey.data[i] = rows[2 * i] << 8 | rows[2 * i + 1];
    }
  }
  return grey;
}

absl::StatusOr<std::string> WritePng(const Picture& picture) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = picture.width;
  image.height = picture.height;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string bytes(size, '\0');
  if (!png_image_write_to_memory(&image, &bytes[0], &size,
                                 /*convert_to_8bit=*/0, picture.data.data(),
                                 /*row_stride=*/0,
                                 /*colormap=*/nullptr)) {
    return Error(image.message);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace sfmamba::client
