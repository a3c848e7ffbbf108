#ifndef SFMAMBA_BASE_DECODER_MEMORY_H_
#define SFMAMBA_BASE_DECODER_MEMORY_H_

#include <cstdint>

namespace sfmamba::base {

// Upper bounds, in bytes, of the memory that decoders allocate in addition to
// the decoded picture. tests/base/decoder_memory_test.cc compares them with
// actual allocations.

// Properties of a JPEG, read from its headers up to the first scan.
struct JpegFrame {
  struct Sampling {
    int across = 1, down = 1;  // Sampling factors, 1 to 4.
  };
  int width = 0;
  int height = 0;
  int components = 3;          // 1, 3 or 4.
  Sampling sampling[4];        // By component.
  bool several_scans = false;  // The JPEG is progressive or not interleaved.
};

// Returns the most memory that libjpeg allocates. For a JPEG with one scan,
// this is a few rows. For a JPEG with several scans, it is the coefficients of
// the whole picture, 2 bytes each. The coefficients take 3 bytes per pixel at
// 4:2:0, 6 at 4:4:4, and 8 for CMYK.
int64_t JpegDecoderBytes(const JpegFrame& frame);

// Returns the most memory that libpng allocates, which is two rows. Interlacing
// makes no difference.
int64_t PngDecoderBytes(int width);

// Returns the most memory that libwebp allocates. For a lossy picture, this is
// some rows. For a lossless picture, it is about 5 bytes per pixel. The alpha
// channel of a lossy picture takes about 6 bytes per pixel, because libwebp
// decodes it although the result has no alpha. A crafted lossless picture may
// exceed the returned value, because it may have more Huffman tables than
// encoders write. The additional tables are not counted.
int64_t WebpDecoderBytes(int width, int height, bool lossless, bool alpha);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_DECODER_MEMORY_H_
