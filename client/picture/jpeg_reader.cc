#include "client/picture/jpeg_reader.h"

#include <csetjmp>
#include <cstdio>  // Before jpeglib.h, which needs FILE and size_t.
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "jpeglib.h"

namespace sfmamba::client {
namespace {

constexpr absl::string_view kExifPrefix("Exif\0\0", 6);
constexpr int kExifMarker = JPEG_APP0 + 1;
// A progressive picture has about ten. Each costs a pass over all coefficients.
constexpr int kMaxScans = 100;

// libjpeg's state and where its errors jump to. Nothing with a destructor may
// live between setjmp and longjmp.
struct Decoder {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr error;
  jpeg_progress_mgr progress;
  jmp_buf failed;
  char message[JMSG_LENGTH_MAX] = "";
};

Decoder& DecoderOf(j_common_ptr common) {
  return *static_cast<Decoder*>(common->client_data);
}

[[noreturn]] void Fail(j_common_ptr common) {
  Decoder& decoder = DecoderOf(common);
  common->err->format_message(common, decoder.message);
  longjmp(decoder.failed, 1);
}

// Warnings (of negative level) before the first scan are about headers; later
// ones mean pixels that libjpeg made up.
void OnMessage(j_common_ptr common, int level) {
  if (level < 0 && DecoderOf(common).jpeg.input_scan_number > 0) Fail(common);
}

void OnProgress(j_common_ptr common) {
  Decoder& decoder = DecoderOf(common);
  if (decoder.jpeg.input_scan_number <= kMaxScans) return;
  snprintf(decoder.message, sizeof(decoder.message), "more than %d scans",
           kMaxScans);
  longjmp(decoder.failed, 1);
}

void IgnoreOutput(j_common_ptr) {}

// From inverted CMYK, which is what cameras' and printers' tools store:
// channel = white - (255 - channel) * white / 255, rounded.
void CmykToRgb(const uint8_t* cmyk, int width, uint8_t* rgb) {
  for (int x = 0; x < width; ++x, cmyk += 4, rgb += 3) {
    for (int c = 0; c < 3; ++c) {
      rgb[c] = cmyk[3] - ((255 - cmyk[c]) * cmyk[3] + 127) / 255;
    }
  }
}

// False: decoder.message says why, as for ReadRows().
bool ReadHeader(Decoder& decoder, absl::string_view bytes) {
  jpeg_decompress_struct& jpeg = decoder.jpeg;
  jpeg.err = jpeg_std_error(&decoder.error);
  decoder.error.error_exit = Fail;
  decoder.error.emit_message = OnMessage;
  decoder.error.output_message = IgnoreOutput;
  decoder.progress.progress_monitor = OnProgress;
  jpeg.client_data = &decoder;
  if (setjmp(decoder.failed)) return false;
  jpeg_create_decompress(&jpeg);
  jpeg.progress = &decoder.progress;
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()),
               bytes.size());
  jpeg_save_markers(&jpeg, kExifMarker, 0xFFFF);
  jpeg_read_header(&jpeg, TRUE);
  return true;
}

bool ReadRows(Decoder& decoder, int width, int height, uint8_t* rgb) {
  jpeg_decompress_struct& jpeg = decoder.jpeg;
  if (setjmp(decoder.failed)) return false;
  const bool is_cmyk = jpeg.num_components == 4;
  jpeg.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&jpeg);
  if (jpeg.output_width != width || jpeg.output_height != height) {
    snprintf(decoder.message, sizeof(decoder.message),
             "two frame headers disagree");
    return false;
  }
  JSAMPARRAY cmyk =
      (*jpeg.mem->alloc_sarray)(reinterpret_cast<j_common_ptr>(&jpeg),
                                JPOOL_IMAGE, is_cmyk ? 4 * width : 1, 1);
  while (jpeg.output_scanline < height) {
    uint8_t* row = rgb + size_t{3} * width * jpeg.output_scanline;
    JSAMPROW target = is_cmyk ? cmyk[0] : row;
    jpeg_read_scanlines(&jpeg, &target, 1);
    if (is_cmyk) CmykToRgb(cmyk[0], width, row);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

absl::Status Error(const Decoder& decoder) {
  return absl::InvalidArgumentError(absl::StrCat("JPEG: ", decoder.message));
}

absl::StatusOr<Picture> Read(Decoder& decoder, absl::string_view bytes,
                             std::string* exif) {
  if (!ReadHeader(decoder, bytes)) return Error(decoder);
  const jpeg_decompress_struct& jpeg = decoder.jpeg;
  const absl::Status status =
      CheckPictureSize(jpeg.image_width, jpeg.image_height);
  if (!status.ok()) return status;
  for (jpeg_saved_marker_ptr marker = jpeg.marker_list; marker != nullptr;
       marker = marker->next) {
    const absl::string_view data(reinterpret_cast<const char*>(marker->data),
                                 marker->data_length);
    if (marker->marker == kExifMarker && absl::StartsWith(data, kExifPrefix)) {
      *exif = std::string(data);
    }
  }
  Picture picture;
  picture.width = jpeg.image_width;
  picture.height = jpeg.image_height;
  picture.data.resize(size_t{3} * picture.width * picture.height);
  if (!ReadRows(decoder, picture.width, picture.height, picture.data.data())) {
    return Error(decoder);
  }
  return picture;
}

}  // namespace

absl::StatusOr<Picture> ReadJpeg(absl::string_view bytes, std::string* exif) {
  Decoder decoder = {};
  absl::StatusOr<Picture> picture = Read(decoder, bytes, exif);
  jpeg_destroy_decompress(&decoder.jpeg);
  return picture;
}

}  // namespace sfmamba::client
