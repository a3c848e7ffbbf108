#include "base/jpeg_decoder.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE and size_t.
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/orientation.h"
#include "jerror.h"
#include "jpeglib.h"

namespace sfmamba::base {
namespace {

// Limits the number of scans, because each scan takes a pass over all
// coefficients. A progressive picture has about ten scans.
constexpr int kMaxScans = 100;

// Limits libjpeg's messages about the headers before the first scan. Each
// segment causes one to three messages. Cameras write tens of segments.
constexpr int kMostHeaderMessages = 10'000;

// At most this many bytes after scans are skipped as junk. More bytes would be
// rows that the header does not count.
constexpr int kMostJunk = 1 << 10;

// libjpeg calls OnProgress() for each row of pixels. While libjpeg reads
// coefficients, it calls OnProgress() for each row of blocks instead. Not every
// call checks whether the DecodeWatch has expired, because a check takes a
// system call. If WatchedRows() returns n, every n-th call checks. The time
// between two checks is about 0.1 ms, or a few ms while libjpeg reads
// coefficients.
constexpr int kLeastWatchedRows = 8, kMostWatchedRows = 64;
constexpr int kWatchedPixels = 1 << 15;

int WatchedRows(int width) {
  return std::clamp(kWatchedPixels / std::max(width, 1), kLeastWatchedRows,
                    kMostWatchedRows);
}

// The state of libjpeg and of its callbacks. After an error, longjmp returns to
// the setjmp that filled `failed`. No object with a destructor may live between
// setjmp and longjmp.
struct Decoder {
  jpeg_decompress_struct decompress;
  jpeg_error_mgr error;
  jpeg_progress_mgr progress;
  jmp_buf failed;
  const DecodeWatch* watch = nullptr;
  int rows = 0;  // Calls of OnProgress() so far.
  int header_messages = 0;
  int junk = 0;  // Bytes skipped after the first scan's header.
  // The orientation in the first EXIF block. Unset if there is none.
  std::optional<int> orientation;
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

[[noreturn]] void Stop(Decoder* decoder, int most, const char* what) {
  snprintf(decoder->message, sizeof(decoder->message), "more than %d %s", most,
           what);
  longjmp(decoder->failed, 1);
}

// libjpeg calls this for each message. Negative levels are warnings, after
// which libjpeg would continue with invented pixels. Only warnings that do not
// affect any pixel are ignored.
void OnMessage(j_common_ptr common, int level) {
  Decoder* decoder = DecoderOf(common);
  if (decoder->decompress.input_scan_number == 0 &&
      ++decoder->header_messages > kMostHeaderMessages) {
    Stop(decoder, kMostHeaderMessages, "segments or tables in the header");
  }
  if (level >= 0) return;
  switch (common->err->msg_code) {
    case JWRN_ADOBE_XFORM:  // libjpeg guesses the unknown colour transform.
    case JWRN_JFIF_MAJOR:   // An unknown JFIF version.
    case JWRN_BOGUS_ICC:
      return;
    case JWRN_EXTRANEOUS_DATA:
      // Bytes that are skipped before the first scan cannot be pixels.
      if (decoder->decompress.input_scan_number == 0) return;
      decoder->junk += common->err->msg_parm.i[0];
      if (decoder->junk <= kMostJunk) return;
  }
  Fail(common);
}

void OnProgress(j_common_ptr common) {
  Decoder* decoder = DecoderOf(common);
  const int scans = decoder->decompress.input_scan_number;
  if (scans > kMaxScans) Stop(decoder, kMaxScans, "scans");
  if (++decoder->rows % WatchedRows(decoder->decompress.image_width) == 0 &&
      decoder->watch->Expired()) {
    decoder->expired = true;
    longjmp(decoder->failed, 1);
  }
}

void IgnoreOutput(j_common_ptr) {}

// Reads the orientation from the first EXIF block, and skips the segment.
// libjpeg's buffer holds the whole file, so it also holds the segment unless
// the file is truncated.
boolean OnApp1(j_decompress_ptr decompress) {
  const j_common_ptr common = reinterpret_cast<j_common_ptr>(decompress);
  OnMessage(common, /*level=*/1);  // Counts the segment as a message.
  std::optional<int>& orientation = DecoderOf(common)->orientation;
  jpeg_source_mgr* source = decompress->src;
  const absl::string_view rest(
      reinterpret_cast<const char*>(source->next_input_byte),
      source->bytes_in_buffer);
  constexpr size_t kLengthBytes = 2;  // The length includes its own two bytes.
  const size_t length =
      rest.size() < kLengthBytes
          ? kLengthBytes
          : std::max<size_t>(BigEndian(rest, 0, kLengthBytes), kLengthBytes);
  if (length <= rest.size() && !orientation.has_value()) {
    const absl::string_view payload = rest.substr(2, length - kLengthBytes);
    if (absl::StartsWith(payload, "Exif")) {
      orientation = ExifOrientation(payload);
    }
  }
  source->skip_input_data(decompress, length);
  return TRUE;
}

// Returns a * b / 255, rounded like Pillow.
int MultiplyDivide255(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// Converts a row of `width` pixels of inverted CMYK like Pillow.
void CmykToRgb(const uint8_t* cmyk, int width, uint8_t* rgb) {
  for (int x = 0; x < width; ++x) {
    const int white = cmyk[4 * x + 3];
    for (int c = 0; c < 3; ++c) {
      rgb[3 * x + c] = white - MultiplyDivide255(255 - cmyk[4 * x + c], white);
    }
  }
}

// Reads the headers up to the first scan. Errors jump to decoder.failed, so the
// caller must have called setjmp on it.
void ReadHeader(Decoder& decoder, absl::string_view bytes) {
  jpeg_decompress_struct& decompress = decoder.decompress;
  decompress.err = jpeg_std_error(&decoder.error);
  decoder.error.error_exit = Fail;
  decoder.error.emit_message = OnMessage;
  decoder.error.output_message = IgnoreOutput;
  decompress.client_data = &decoder;
  jpeg_create_decompress(&decompress);
  jpeg_mem_src(&decompress,
               reinterpret_cast<const unsigned char*>(bytes.data()),
               bytes.size());
  jpeg_set_marker_processor(&decompress, JPEG_APP0 + 1, OnApp1);
  jpeg_read_header(&decompress, TRUE);
}

// Returns true if an end marker follows the last row after at most kMostJunk
// bytes.
bool HasEnd(jpeg_decompress_struct& decompress) {
  if (decompress.unread_marker == JPEG_EOI ||
      jpeg_input_complete(&decompress)) {
    return true;
  }
  const jpeg_source_mgr& source = *decompress.src;
  const absl::string_view rest(
      reinterpret_cast<const char*>(source.next_input_byte),
      std::min<size_t>(source.bytes_in_buffer, kMostJunk + 2));
  return absl::StrContains(rest, "\xFF\xD9");
}

// TryHeader() and TryDecode() return false on an error. decoder.message then
// describes it unless decoder.expired is true.

bool TryHeader(Decoder& decoder, absl::string_view bytes) {
  if (setjmp(decoder.failed)) return false;
  ReadHeader(decoder, bytes);
  return true;
}

bool TryDecode(Decoder& decoder, absl::string_view bytes, int eighths,
               int width, int height, int64_t max_memory, RowPlace place) {
  jpeg_decompress_struct& decompress = decoder.decompress;
  if (setjmp(decoder.failed)) return false;
  ReadHeader(decoder, bytes);
  decompress.mem->max_memory_to_use = max_memory;
  decoder.progress.progress_monitor = OnProgress;
  decompress.progress = &decoder.progress;
  const bool is_cmyk = decompress.num_components == 4;
  decompress.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
  decompress.scale_num = eighths;
  decompress.scale_denom = 8;
  jpeg_start_decompress(&decompress);
  JSAMPARRAY cmyk = (*decompress.mem->alloc_sarray)(
      reinterpret_cast<j_common_ptr>(&decompress), JPOOL_IMAGE,
      is_cmyk ? 4 * width : 1, 1);
  while (decompress.output_scanline < height) {
    uint8_t* row = place(decompress.output_scanline);
    JSAMPROW target = is_cmyk ? cmyk[0] : row;
    jpeg_read_scanlines(&decompress, &target, 1);
    if (is_cmyk) CmykToRgb(cmyk[0], width, row);
  }
  if (HasEnd(decompress)) return true;
  snprintf(decoder.message, sizeof(decoder.message),
           "no end marker follows the last row");
  return false;
}

absl::Status ErrorOf(const Decoder& decoder) {
  const std::string message = absl::StrCat("JPEG: ", decoder.message);
  switch (decoder.error.msg_code) {
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
      return absl::UnimplementedError(message);
    case JERR_IMAGE_TOO_BIG:
      return absl::OutOfRangeError(message);
  }
  return absl::InvalidArgumentError(message);
}

}  // namespace

absl::StatusOr<JpegHeader> ReadJpegHeader(absl::string_view bytes) {
  Decoder decoder = {};
  jpeg_decompress_struct& decompress = decoder.decompress;
  const bool read = TryHeader(decoder, bytes);
  JpegHeader header;
  JpegFrame& frame = header.frame;
  header.orientation = decoder.orientation.value_or(1);
  frame.width = decompress.image_width;
  frame.height = decompress.image_height;
  frame.components = decompress.num_components;
  const bool supported =
      frame.components == 1 || frame.components == 3 || frame.components == 4;
  if (read && supported) {
    frame.several_scans = jpeg_has_multiple_scans(&decompress);
    for (int i = 0; i < frame.components; ++i) {
      const jpeg_component_info& component = decompress.comp_info[i];
      frame.sampling[i] = {component.h_samp_factor, component.v_samp_factor};
    }
  }
  jpeg_destroy_decompress(&decompress);
  if (!read) return ErrorOf(decoder);
  if (supported) return header;
  return absl::UnimplementedError(absl::StrCat(
      "JPEG: ", frame.components, " components, expected 1, 3 or 4"));
}

absl::Status DecodeJpeg(absl::string_view bytes, int eighths, int width,
                        int height, int64_t max_memory,
                        const DecodeWatch& watch, RowPlace row) {
  Decoder decoder = {};
  decoder.watch = &watch;
  const bool decoded =
      TryDecode(decoder, bytes, eighths, width, height, max_memory, row);
  jpeg_destroy_decompress(&decoder.decompress);
  if (decoded) return absl::OkStatus();
  return decoder.expired ? watch.status() : ErrorOf(decoder);
}

}  // namespace sfmamba::base
