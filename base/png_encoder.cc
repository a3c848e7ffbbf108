#include "base/png_encoder.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "png.h"
#include "zlib.h"

namespace sfmamba::base {
namespace {

// The size of the compressed data at which libpng writes a chunk.
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
  // If true, compression is fastest and rows have no filter. If false, libpng
  // chooses the compression level and the filters.
  bool fastest;
};

// WriteHeader() and WriteRows() return false on an error, which target.message
// describes. libpng reports an error with longjmp, so no object with a
// destructor may be alive in these functions while they call libpng.

bool WriteHeader(png_structp png, png_infop info, Target& target,
                 const Format& format) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_write_fn(png, &target, Append, Flush);
  if (format.fastest) {
    png_set_compression_level(png, 1);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  }
  if (format.bit_depth == 1) {
    // A mask's row mostly equals the row above, so this filter leaves runs of
    // zeros. Compressing only runs takes at most 2 ns per byte of an ordinary
    // mask. It takes 10 ns per byte of noise. The tables are small, because
    // clearing large tables would take longer than encoding a small mask.
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
    png_set_compression_strategy(png, Z_RLE);
    png_set_compression_window_bits(png, 13);
    png_set_compression_mem_level(png, 6);
  }
  png_set_compression_buffer_size(png, kChunkBytes);
  png_set_IHDR(png, info, format.width, format.height, format.bit_depth,
               format.color_type, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
               PNG_FILTER_TYPE_BASE);
  png_write_info(png, info);
  return true;
}

bool WriteRows(png_structp png, int begin, int end, bool last,
               absl::FunctionRef<const uint8_t*(int)> row) {
  if (setjmp(png_jmpbuf(png))) return false;
  for (int y = begin; y < end; ++y) png_write_row(png, row(y));
  if (last) png_write_end(png, nullptr);
  return true;
}

}  // namespace

// Writes a PNG some rows at a time. The object must not move, because libpng
// stores pointers to it.
class PngWriter {
 public:
  explicit PngWriter(const Format& format) : format_(format) {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &target_, Fail,
                                   IgnoreWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    ok_ = info_ != nullptr && WriteHeader(png_, info_, target_, format_);
  }
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  // Writes the next `rows` rows, or the remaining ones if there are fewer.
  // `row` returns row y in the file's layout.
  absl::Status Write(int rows, absl::FunctionRef<const uint8_t*(int y)> row) {
    const int end = std::min<int64_t>(int64_t{rows_} + rows, format_.height);
    ok_ = ok_ && WriteRows(png_, rows_, end, end == format_.height, row);
    rows_ = end;
    if (ok_) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("PNG: ", target_.message));
  }
  bool done() const { return rows_ == format_.height; }
  int64_t bytes() const { return target_.bytes.size(); }
  std::string Take() { return std::move(target_.bytes); }

 private:
  const Format format_;
  Target target_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int rows_ = 0;  // Rows written so far.
  bool ok_ = false;
};

GreyPngEncoder::GreyPngEncoder(int width, int height, int bit_depth)
    : writer_(std::make_unique<PngWriter>(Format{width, height, bit_depth,
                                                 PNG_COLOR_TYPE_GRAY,
                                                 /*fastest=*/true})),
      row_((size_t{1} * width * bit_depth + 7) / 8) {}

GreyPngEncoder::~GreyPngEncoder() = default;

absl::Status GreyPngEncoder::AddRows(
    int rows, absl::FunctionRef<void(int, uint8_t*)> fill_row) {
  return writer_->Write(rows, [&](int y) {
    fill_row(y, row_.data());
    return row_.data();
  });
}

bool GreyPngEncoder::done() const { return writer_->done(); }

int64_t GreyPngEncoder::bytes() const { return writer_->bytes(); }

std::string GreyPngEncoder::Take() { return writer_->Take(); }

absl::StatusOr<std::string> EncodeRgbPng(const RgbImage& image) {
  if (image.width <= 0 || image.height <= 0) {
    return absl::InvalidArgumentError("PNG: a picture without pixels");
  }
  PngWriter writer({image.width, image.height, /*bit_depth=*/8,
                    PNG_COLOR_TYPE_RGB, /*fastest=*/false});
  const absl::Status status = writer.Write(image.height, [&](int y) {
    return &image.data[size_t{3} * y * image.width];
  });
  if (!status.ok()) return status;
  return writer.Take();
}

}  // namespace sfmamba::base
