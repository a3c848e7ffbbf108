#include "base/decoder_memory.h"

#include <algorithm>

namespace sfmamba::base {
namespace {

// Bytes of the decoders' tables and states, which do not depend on the
// picture's size.
constexpr int64_t kJpegState = 96 << 10;
constexpr int64_t kPngState = 96 << 10;
constexpr int64_t kWebpState = 64 << 10;
constexpr int64_t kWebpLosslessTables = 1 << 20;

constexpr int kBlock = 8;  // Width and height of a JPEG block, in samples.
constexpr int64_t kBlockBytes = 2 * kBlock * kBlock;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return DivideUp(a, b) * b; }

}  // namespace

int64_t JpegDecoderBytes(const JpegFrame& frame) {
  int across = 1, down = 1;  // The largest sampling factors.
  for (int i = 0; i < frame.components; ++i) {
    across = std::max(across, frame.sampling[i].across);
    down = std::max(down, frame.sampling[i].down);
  }
  int64_t bytes = kJpegState;
  for (int i = 0; i < frame.components; ++i) {
    const JpegFrame::Sampling& own = frame.sampling[i];
    const int64_t blocks_across =
        RoundUp(DivideUp(int64_t{frame.width} * own.across, across * kBlock),
                own.across);
    const int64_t blocks_down = RoundUp(
        DivideUp(int64_t{frame.height} * own.down, down * kBlock), own.down);
    if (frame.several_scans) {
      const int64_t row = blocks_across * kBlockBytes + sizeof(void*);
      bytes += blocks_down * row;
    }
    // Before upsampling, the component has `blocks_across` * kBlock samples per
    // row. libjpeg then holds `own.down` rows of blocks, and 2 * `own.down`
    // rows of samples next to them. After upsampling, rows are as wide as the
    // picture, and libjpeg holds at most `down` + 1 of them.
    bytes += blocks_across * kBlock * own.down * (kBlock + 2) +
             RoundUp(frame.width, across * kBlock) * (down + 1);
  }
  return bytes;
}

int64_t PngDecoderBytes(int width) {
  constexpr int kLargestPixel = 8;  // Bytes of a pixel of 16-bit RGBA.
  return kPngState + int64_t{2} * kLargestPixel * width;
}

int64_t WebpDecoderBytes(int width, int height, bool lossless, bool alpha) {
  const int64_t pixels = int64_t{width} * height;
  // A lossless picture takes 4 bytes per pixel. Predictors, colours and codes
  // each take another quarter of a byte per pixel. In addition, libwebp holds
  // 17 rows of 4 bytes per pixel.
  const int64_t as_lossless =
      kWebpLosslessTables + pixels / 4 * 19 + int64_t{4} * 17 * width;
  if (lossless) return kWebpState + as_lossless;
  // libwebp holds samples, modes and coefficients for two rows of blocks of 16
  // x 16 pixels.
  const int64_t rows = RoundUp(width, 16) * 160;
  return kWebpState + rows + (alpha ? pixels + as_lossless : 0);
}

}  // namespace sfmamba::base
