#ifndef SFMAMBA_BASE_DECODER_MEMORY_H_
#define SFMAMBA_BASE_DECODER_MEMORY_H_

#include <cstdint>

namespace sfmamba::base {

// The memory that the decoders take beside the picture that they write, in
// bytes, at most. tests/base/decoder_memory_test.cc compares it with what they
// allocate.

// What a JPEG's headers say, up to its first scan.
struct JpegFrame {
  struct Sampling {
    int across = 1, down = 1;  // 1..4.
  };
  int width = 0;
  int height = 0;
  int components = 3;          // 1, 3 or 4.
  Sampling sampling[4];        // By component.
  bool several_scans = false;  // It is progressive, or not interleaved.
};

// With one scan libjpeg keeps some rows. With several it keeps the coefficients
// of the whole picture, 2 bytes each: 3 bytes a pixel at 4:2:0, 6 at 4:4:4, 8
// of CMYK.
int64_t JpegDecoderBytes(const JpegFrame& frame);

// libpng keeps two rows, interlaced or not.
int64_t PngDecoderBytes(int width);

// libwebp keeps rows of a lossy picture, and 4 bytes for each pixel of a
// lossless one and of an alpha channel, which it decodes although the answer
// drops it. Not counted are the Huffman tables of a lossless picture that has
// more of them than an encoder makes.
int64_t WebpDecoderBytes(int width, int height, bool lossless, bool alpha);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_DECODER_MEMORY_H_
