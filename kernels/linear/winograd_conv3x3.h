#ifndef SFMAMBA_KERNELS_LINEAR_WINOGRAD_CONV3X3_H_
#define SFMAMBA_KERNELS_LINEAR_WINOGRAD_CONV3X3_H_

#include <cstdint>

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// The function that is applied to the convolution's sums.
enum class WinogradActivation { kNone, kRelu, kGeluTanh };

// A 3x3 convolution in fp32 with stride 1 and padding 1. It uses Winograd's
// method F(m x m, 3x3), where m is 4 or 7. Each tile of m x m outputs is
// computed from n x n inputs d, where n = m + 2, and the weights g:
//   A^T ((G g G^T) . (B^T d B)) A
// For each pair of channels, a tile takes n^2 products instead of 9 m^2. Per
// output, this is 2.25 products with m = 4 and 1.65 products with m = 7. The
// products of all tiles form n^2 matrix products. The rounding error is larger
// than in a direct convolution: about 1e-6 of the outputs with m = 4, and 1e-5
// with m = 7.
//
// A tile's outputs have the same bits whatever the other tiles contain and
// whichever thread computes them. A NaN affects only the tiles that read it.
// Source: Lavin and Gray (arXiv 1509.09308), section 4.
struct WinogradConv3x3Args {
  int side;                  // m, for which the weights are packed.
  int count, height, width;  // The number and size of the maps.
  int in, out;               // Channels.
  const float* x;            // [count, height, width, in]
  // Packed by PackWinogradWeights() for the same isa.
  const float* weights;
  const float* bias;              // [out] or null.
  WinogradActivation activation;  // After the bias. NaN stays NaN.
  bool add;                       // Adds to y instead of overwriting it.
  float* y;                       // [count, height, width, out], written
};

// Returns the faster m, 4 or 7, for `count` maps of this size. Returns 7 if it
// takes fewer products, if there are enough tiles for efficient matrix
// products, and if the weights fit into the cache that threads share. Otherwise
// returns 4.
int WinogradSide(int64_t count, int height, int width, int in, int out);

// Returns the number of floats in the packed weights.
int64_t WinogradWeightsSize(int side, int in, int out,
                            CpuIsa isa = ActiveCpuIsa());

// Transforms `weights`, [out, in, 3, 3] and contiguous, and packs them into
// `packed`, which must hold WinogradWeightsSize() floats.
void PackWinogradWeights(const float* weights, int side, int in, int out,
                         float* packed, CpuIsa isa = ActiveCpuIsa());

// Returns the number of tiles in all maps.
int64_t WinogradTiles(const WinogradConv3x3Args& args);

// Returns the number of floats that WinogradConv3x3Cpu() needs as scratch
// memory to compute `tiles` tiles.
int64_t WinogradScratchSize(const WinogradConv3x3Args& args, int64_t tiles);

// Computes tiles [begin, end). Runs on the calling thread. `scratch` must have
// room for WinogradScratchSize(args, end - begin) floats and need not be
// initialised. It should be aligned to a cache line.
void WinogradConv3x3Cpu(const WinogradConv3x3Args& args, int64_t begin,
                        int64_t end, float* scratch,
                        CpuIsa isa = ActiveCpuIsa());

// The maximum number of tiles in a block. This limit keeps the transformed
// values of a block in the cache.
constexpr int64_t kWinogradBlock = 96;

// The transformed values of a block of `count` tiles, the first of which is
// tile `first`.
struct WinogradBlock {
  int64_t first, count;
  float* inputs;   // The products' inputs: n^2 matrices [count, in].
  float* outputs;  // The products' outputs: n^2 matrices [count, out].
  // The distance in floats from one of the n^2 matrices to the next.
  int64_t input_stride, output_stride;
  const float* padding;  // [in] zeros.
};

// The transforms before and after the products. WinogradConv3x3Cpu() calls one
// of these, depending on the instruction set.
void WinogradInputScalar(const WinogradConv3x3Args& args,
                         const WinogradBlock& block);
void WinogradInputAvx2(const WinogradConv3x3Args& args,
                       const WinogradBlock& block);
void WinogradInputAvx512(const WinogradConv3x3Args& args,
                         const WinogradBlock& block);
void WinogradOutputScalar(const WinogradConv3x3Args& args,
                          const WinogradBlock& block);
void WinogradOutputAvx2(const WinogradConv3x3Args& args,
                        const WinogradBlock& block);
void WinogradOutputAvx512(const WinogradConv3x3Args& args,
                          const WinogradBlock& block);

// The position of a tile's first output.
struct WinogradTile {
  int64_t map;
  int row, column;
};

inline WinogradTile WinogradTileAt(const WinogradConv3x3Args& args,
                                   int64_t index) {
  const int side = args.side;
  const int64_t down = (args.height + side - 1) / side;
  const int64_t across = (args.width + side - 1) / side;
  return {index / (down * across),
          static_cast<int>(index / across % down * side),
          static_cast<int>(index % across * side)};
}

// Returns the channels of pixel (row, column) of a map of x, or `padding` if it
// is outside the map.
inline const float* WinogradPixel(const WinogradConv3x3Args& args, int64_t map,
                                  int row, int column, const float* padding) {
  if (row < 0 || row >= args.height || column < 0 || column >= args.width) {
    return padding;
  }
  return args.x + ((map * args.height + row) * args.width + column) * args.in;
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_WINOGRAD_CONV3X3_H_
