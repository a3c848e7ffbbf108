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

// Returns the bound for libjpeg. For a JPEG with one scan, libjpeg allocates a
// few rows. For several scans it allocates the coefficients of the whole
// picture, 2 bytes each. This is 3 bytes per pixel at 4:2:0, 6 at 4:4:4, and 8
// for CMYK.
int64_t JpegDecoderBytes(const JpegFrame& frame);

// Returns the bound for libpng, which allocates two rows. Interlacing makes no
// difference.
int64_t PngDecoderBytes(int width);

// Returns the bound for libwebp. For a lossy picture, libwebp allocates some
// rows. For a lossless picture it allocates 4 bytes per pixel. An alpha channel
// takes another 4 bytes per pixel, because libwebp decodes it although the
// result has no alpha. A lossless picture may have more Huffman tables than
// encoders write. The bound does not include these tables.
int64_t WebpDecoderBytes(int width, int height, bool lossless, bool alpha);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_DECODER_MEMORY_H_
