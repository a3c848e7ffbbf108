#include "base/jpeg_decoder.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // Before jpeglib.h, which needs FILE and size_t.

#include "absl/strings/str_cat.h"
#include "jerror.h"
#include "jpeglib.h"

namespace sfmamba::base {
namespace {

// A progressive picture has about ten. Each costs a pass over all coefficients.
constexpr int kMaxScans = 100;

// Interval between two looks at the watch, in rows of pixels or of blocks:
// about 0.1 ms, or a few ms where rows of blocks are read. A look costs a
// system call, and an expired picture runs on until the next one.
constexpr int kLeastWatchedRows = 8, kMostWatchedRows = 64;
constexpr int kWatchedPixels = 1 << 15;

int WatchedRows(int width) {
  return std::clamp(kWatchedPixels / std::max(width, 1), kLeastWatchedRows,
                    kMostWatchedRows);
}

// libjpeg's hooks and where they jump to. Nothing with a destructor may live
// between setjmp and longjmp.
struct Decoder {
  jpeg_decompress_struct decompress;
  jpeg_error_mgr error;
  jpeg_progress_mgr progress;
  jmp_buf failed;
  const DecodeWatch* watch = nullptr;
  int rows = 0;  // Calls of OnProgress() so far.
  bool expired = false;
  char message[JMSG_LENGTH_MAX] = "";
};

Decoder* DecoderOf(j_common_ptr common) {
  return static_cast<Decoder*>(common->client_data);
}

[[noreturn]] void Fail(j_common_ptr common) {
  Decoder* decoder = DecoderOf(common);
  common->err->format_message(common, decoder->message);
  longjmp(decoder->failed, 1);
}

// Negative levels are warnings: libjpeg goes on with made-up pixels. Only those
// that cost none may pass.
void OnMessage(j_common_ptr common, int level) {
  if (level >= 0) return;
  switch (common->err->msg_code) {
    case JWRN_ADOBE_XFORM:  // An unknown colour transform: guessed.
    case JWRN_JFIF_MAJOR:   // An unknown JFIF version.
    case JWRN_BOGUS_ICC:
      return;
    case JWRN_EXTRANEOUS_DATA:
      // Stray bytes between segments are harmless; within the scans they mean
      // that the header's size is wrong.
      if (DecoderOf(common)->decompress.input_scan_number == 0) return;
  }
  Fail(common);
}

void OnProgress(j_common_ptr common) {
  Decoder* decoder = DecoderOf(common);
  const int scans = decoder->decompress.input_scan_number;
  if (scans > kMaxScans) {
    snprintf(decoder->message, sizeof(decoder->message), "more than %d scans",
             kMaxScans);
    longjmp(decoder->failed, 1);
  }
  if (++decoder->rows % WatchedRows(decoder->decompress.image_width) == 0 &&
      decoder->watch->Expired()) {
    decoder->expired = true;
    longjmp(decoder->failed, 1);
  }
}

void IgnoreOutput(j_common_ptr) {}

// a * b / 255, rounded, as Pillow does it.
int MultiplyDivide255(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// From inverted CMYK. Pillow's conversion.
void CmykToRgb(const uint8_t* cmyk, int width, uint8_t* rgb) {
  for (int x = 0; x < width; ++x) {
    const int white = cmyk[4 * x + 3];
    for (int c = 0; c < 3; ++c) {
      rgb[3 * x + c] = white - MultiplyDivide255(255 - cmyk[4 * x + c], white);
    }
  }
}

// False: decoder.message says why.
bool Decode(Decoder& decoder, absl::string_view bytes, int eighths, int width,
            int height, int64_t max_memory, RowPlace place) {
  jpeg_decompress_struct& decompress = decoder.decompress;
  decompress.err = jpeg_std_error(&decoder.error);
  decoder.error.error_exit = Fail;
  decoder.error.emit_message = OnMessage;
  decoder.error.output_message = IgnoreOutput;
  decompress.client_data = &decoder;
  if (setjmp(decoder.failed)) return false;
  jpeg_create_decompress(&decompress);
  decompress.mem->max_memory_to_use = max_memory;
  decoder.progress.progress_monitor = OnProgress;
  decompress.progress = &decoder.progress;
  jpeg_mem_src(&decompress,
               reinterpret_cast<const unsigned char*>(bytes.data()),
               bytes.size());
  jpeg_read_header(&decompress, TRUE);
  const bool is_cmyk = decompress.num_components == 4;
  decompress.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
  decompress.scale_num = eighths;
  decompress.scale_denom = 8;
  jpeg_start_decompress(&decompress);
  if (decompress.output_width != width || decompress.output_height != height) {
    snprintf(decoder.message, sizeof(decoder.message),
             "two frame headers disagree");
    return false;
  }
  JSAMPARRAY cmyk = (*decompress.mem->alloc_sarray)(
      reinterpret_cast<j_common_ptr>(&decompress), JPOOL_IMAGE,
      is_cmyk ? 4 * width : 1, 1);
  while (decompress.output_scanline < height) {
    uint8_t* row = place(decompress.output_scanline);
    JSAMPROW target = is_cmyk ? cmyk[0] : row;
    jpeg_read_scanlines(&decompress, &target, 1);
    if (is_cmyk) CmykToRgb(cmyk[0], width, row);
  }
  jpeg_finish_decompress(&decompress);
  return true;
}

}  // namespace

absl::Status DecodeJpeg(absl::string_view bytes, int eighths, int width,
                        int height, int64_t max_memory,
                        const DecodeWatch& watch, RowPlace row) {
  Decoder decoder = {};
  decoder.watch = &watch;
  const bool decoded =
      Decode(decoder, bytes, eighths, width, height, max_memory, row);
  jpeg_destroy_decompress(&decoder.decompress);
  if (decoded) return absl::OkStatus();
  if (decoder.expired) return watch.status();
  return absl::InvalidArgumentError(absl::StrCat("JPEG: ", decoder.message));
}

}  // namespace sfmamba::base
