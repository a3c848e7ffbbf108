#ifndef SFMAMBA_KERNELS_LINEAR_WINOGRAD_CONV3X3_H_
#define SFMAMBA_KERNELS_LINEAR_WINOGRAD_CONV3X3_H_

#include <cstdint>

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// What a convolution does to its sums.
enum class WinogradActivation { kNone, kRelu, kGeluTanh };

// A 3x3 convolution of stride 1 and padding 1 in fp32 by Winograd's method
// F(4x4, 3x3): tiles of 4x4 outputs are made of 6x6 inputs d by
//   A^T ((G g G^T) . (B^T d B)) A,
// which takes 36 products a pair of channels where the plain sum takes 144;
// over all tiles they are 36 matrix products. It rounds more: the error is some
// 1e-6 of the largest output.
//
// A tile has the same bits beside any other tiles, on any thread; a NaN stays
// in its tile and in those that read it. Source: Lavin and Gray (arXiv
// 1509.09308), 4.
struct WinogradConv3x3Args {
  int count, height, width;       // Maps.
  int in, out;                    // Channels.
  const float* x;                 // [count, height, width, in]
  const float* weights;           // As PackWinogradWeights leaves them.
  const float* bias;              // [out] or null.
  WinogradActivation activation;  // Of the sums with bias; a NaN stays.
  bool add;                       // y += instead of y =.
  float* y;                       // [count, height, width, out], written
};

// Values in the packed weights.
int64_t WinogradWeightsSize(int in, int out, CpuIsa isa = ActiveCpuIsa());

// From [out, in, 3, 3], dense, to `packed`, for the same isa.
void PackWinogradWeights(const float* weights, int in, int out, float* packed,
                         CpuIsa isa = ActiveCpuIsa());

// Tiles of all maps.
int64_t WinogradTiles(const WinogradConv3x3Args& args);

// Writes tiles [begin, end). Runs on the calling thread.
void WinogradConv3x3Cpu(const WinogradConv3x3Args& args, int64_t begin,
                        int64_t end, CpuIsa isa = ActiveCpuIsa());

// The method's points are 0, +-kWinogradA, +-kWinogradB and infinity. These
// round a third as much as the paper's 1 and 2 do.
constexpr float kWinogradA = 0.75f, kWinogradB = 1.5f;

// Tiles that are worked on together at most: what is kept of them stays in
// cache.
constexpr int64_t kWinogradBlock = 96;

// `count` tiles from `first` on, between the maps and the products.
struct WinogradBlock {
  int64_t first, count;
  float* inputs;   // Of the products, 36 of [count, in], input_stride apart.
  float* outputs;  // 36 of [count, out], output_stride apart.
  int64_t input_stride, output_stride;
  const float* padding;  // [in] zeros.
};

// WinogradConv3x3Cpu chooses among these, one per instruction set.
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

// Where a tile's outputs begin.
struct WinogradTile {
  int64_t map;
  int row, column;
};

inline WinogradTile WinogradTileAt(const WinogradConv3x3Args& args,
                                   int64_t index) {
  const int64_t down = (args.height + 3) / 4, across = (args.width + 3) / 4;
  return {index / (down * across), static_cast<int>(index / across % down * 4),
          static_cast<int>(index % across * 4)};
}

// The channels of pixel (row, column) of a map of x, or `padding` outside.
inline const float* WinogradPixel(const WinogradConv3x3Args& args, int64_t map,
                                  int row, int column, const float* padding) {
  if (row < 0 || row >= args.height || column < 0 || column >= args.width) {
    return padding;
  }
  return args.x + ((map * args.height + row) * args.width + column) * args.in;
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_WINOGRAD_CONV3X3_H_
