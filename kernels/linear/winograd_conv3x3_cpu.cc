#include <algorithm>
#include <vector>

#include "kernels/linear/gelu.h"
#include "kernels/linear/packed_gemm.h"
#include "kernels/linear/winograd_conv3x3.h"
#include "kernels/linear/winograd_matrices.h"

namespace sfmamba::kernels {
namespace {

// The number of floats of padding after each of the n^2 matrices: one cache
// line. Without padding, a tile's values in all matrices could share a cache
// set.
constexpr int64_t kSkew = 16;

// m = 7 is chosen only if its number of products is less than this fraction of
// the number for m = 4, because the transforms of m = 7 take longer.
constexpr double kFewer = 0.9;
// m = 7 is chosen only for at least this number of tiles. Each tile is a row of
// the matrix products. With fewer rows, reading the weights from memory would
// take too large a part of the time.
constexpr int64_t kFewestTiles = 40;
// m = 7 is chosen only if its weights take at most this number of bytes and so
// fit into the cache. Every block of tiles reads all weights.
constexpr int64_t kMostWeights = 32 << 20;

int64_t Tiles(int side, int64_t count, int height, int width) {
  return count * ((height + side - 1) / side) * ((width + side - 1) / side);
}

int64_t Positions(int side) { return int64_t{side + 2} * (side + 2); }

// These return the distance in floats from one position's matrix to the next.
// `tiles` is the number of tiles to compute.
int64_t InputStride(const WinogradConv3x3Args& args, int64_t tiles) {
  return std::min(kWinogradBlock, tiles) * args.in + kSkew;
}
int64_t OutputStride(const WinogradConv3x3Args& args, int64_t tiles) {
  return std::min(kWinogradBlock, tiles) * args.out + kSkew;
}

// Returns row * V * column^T. The function at(a, b) returns element (a, b) of
// the matrix V [size, size].
template <typename At>
float Transformed(const double* row, const double* column, int size, At at) {
  double sum = 0;
  for (int a = 0; a < size; ++a) {
    double part = 0;
    for (int b = 0; b < size; ++b) part += column[b] * at(a, b);
    sum += row[a] * part;
  }
  return static_cast<float>(sum);
}

void WinogradInput(const WinogradConv3x3Args& args, const WinogradBlock& block,
                   CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return WinogradInputScalar(args, block);
    case CpuIsa::kAvx2:
      return WinogradInputAvx2(args, block);
    case CpuIsa::kAvx512:
      return WinogradInputAvx512(args, block);
  }
}

void WinogradOutput(const WinogradConv3x3Args& args, const WinogradBlock& block,
                    CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return WinogradOutputScalar(args, block);
    case CpuIsa::kAvx2:
      return WinogradOutputAvx2(args, block);
    case CpuIsa::kAvx512:
      return WinogradOutputAvx512(args, block);
  }
}

// Computes a block's n^2 matrix products, one for each position in a tile.
void Multiply(const WinogradConv3x3Args& args, const WinogradBlock& block,
              CpuIsa isa) {
  const int64_t size = PackedWeightsSize(args.in, args.out, isa);
  const int64_t positions = Positions(args.side);
  for (int64_t position = 0; position < positions; ++position) {
    PackedGemmArgs product{};
    product.rows = block.count;
    product.in = args.in;
    product.out = args.out;
    product.x = block.inputs + position * block.input_stride;
    product.x_stride = args.in;
    product.weights = args.weights + position * size;
    product.y = block.outputs + position * block.output_stride;
    product.y_stride = args.out;
    PackedGemmCpu(product, isa);
  }
}

// Applies the activation to a pixel's sums, which include the bias. Writes them
// to y, or adds them to y if args.add is true. Overwrites `sums`.
void Finish(const WinogradConv3x3Args& args, float* sums, float* y) {
  if (args.activation == WinogradActivation::kGeluTanh) {
    GeluTanhCpu<float>({1, args.out, sums, args.out, sums, args.out},
                       CpuIsa::kScalar);
  }
  for (int c = 0; c < args.out; ++c) {
    const bool zero =
        args.activation == WinogradActivation::kRelu && sums[c] < 0;
    const float value = zero ? 0 : sums[c];
    y[c] = args.add ? y[c] + value : value;
  }
}

}  // namespace

int WinogradSide(int64_t count, int height, int width, int in, int out) {
  const int64_t weights = Positions(7) * in * out * sizeof(float);
  const int64_t tiles = Tiles(7, count, height, width);
  const double products = Positions(7) * tiles;
  const double others = Positions(4) * Tiles(4, count, height, width);
  return tiles >= kFewestTiles && products < kFewer * others &&
                 weights <= kMostWeights
             ? 7
             : 4;
}

int64_t WinogradWeightsSize(int side, int in, int out, CpuIsa isa) {
  return Positions(side) * PackedWeightsSize(in, out, isa);
}

void PackWinogradWeights(const float* weights, int side, int in, int out,
                         float* packed, CpuIsa isa) {
  const WinogradMatrices& matrices = WinogradMatricesOf(side);
  const int64_t pairs = int64_t{in} * out;
  std::vector<double> row(3 * pairs);  // One row of G g, [pairs, 3].
  std::vector<float> position(pairs);
  for (int i = 0; i < matrices.n; ++i) {
    const double* const from = matrices.weights[i];
    for (int64_t k = 0; k < pairs; ++k) {
      for (int b = 0; b < 3; ++b) {
        const float* taps = weights + 9 * k + b;
        row[3 * k + b] =
            from[0] * taps[0] + from[1] * taps[3] + from[2] * taps[6];
      }
    }
    for (int j = 0; j < matrices.n; ++j) {
      const double* const to = matrices.weights[j];
      for (int64_t k = 0; k < pairs; ++k) {
        position[k] =
            static_cast<float>(to[0] * row[3 * k] + to[1] * row[3 * k + 1] +
                               to[2] * row[3 * k + 2]);
      }
      PackWeights(position.data(), in, out, packed, isa);
      packed += PackedWeightsSize(in, out, isa);
    }
  }
}

int64_t WinogradTiles(const WinogradConv3x3Args& args) {
  return Tiles(args.side, args.count, args.height, args.width);
}

int64_t WinogradScratchSize(const WinogradConv3x3Args& args, int64_t tiles) {
  return Positions(args.side) *
         (InputStride(args, tiles) + OutputStride(args, tiles));
}

void WinogradConv3x3Cpu(const WinogradConv3x3Args& args, int64_t begin,
                        int64_t end, float* scratch, CpuIsa isa) {
  const int64_t input_stride = InputStride(args, end - begin);
  const int64_t output_stride = OutputStride(args, end - begin);
  float* const outputs = scratch + Positions(args.side) * input_stride;
  const std::vector<float> padding(args.in);
  const int64_t tiles = end - begin;
  const int64_t blocks = (tiles + kWinogradBlock - 1) / kWinogradBlock;
  for (int64_t b = 0; b < blocks; ++b) {  // Blocks are nearly equal in size.
    const int64_t first = begin + tiles * b / blocks;
    const WinogradBlock block{
        first,         begin + tiles * (b + 1) / blocks - first,
        scratch,       outputs,
        input_stride,  output_stride,
        padding.data()};
    WinogradInput(args, block, isa);
    Multiply(args, block, isa);
    WinogradOutput(args, block, isa);
  }
}

void WinogradInputScalar(const WinogradConv3x3Args& args,
                         const WinogradBlock& block) {
  const WinogradMatrices& matrices = WinogradMatricesOf(args.side);
  const int n = matrices.n;
  for (int64_t t = 0; t < block.count; ++t) {
    const WinogradTile tile = WinogradTileAt(args, block.first + t);
    for (int p = 0; p < n * n; ++p) {
      for (int c = 0; c < args.in; ++c) {
        block.inputs[p * block.input_stride + t * args.in + c] = Transformed(
            matrices.inputs[p / n], matrices.inputs[p % n], n,
            [&](int a, int b) {
              return WinogradPixel(args, tile.map, tile.row + a - 1,
                                   tile.column + b - 1, block.padding)[c];
            });
      }
    }
  }
}

void WinogradOutputScalar(const WinogradConv3x3Args& args,
                          const WinogradBlock& block) {
  const WinogradMatrices& matrices = WinogradMatricesOf(args.side);
  const int m = matrices.m, n = matrices.n;
  std::vector<float> sums(args.out);
  for (int64_t t = 0; t < block.count; ++t) {
    const WinogradTile tile = WinogradTileAt(args, block.first + t);
    for (int i = 0; i < m && tile.row + i < args.height; ++i) {
      for (int j = 0; j < m && tile.column + j < args.width; ++j) {
        float* y =
            args.y + ((tile.map * args.height + tile.row + i) * args.width +
                      tile.column + j) *
                         args.out;
        for (int c = 0; c < args.out; ++c) {
          float value = Transformed(
              matrices.outputs[i], matrices.outputs[j], n, [&](int a, int b) {
                return block.outputs[(n * a + b) * block.output_stride +
                                     t * args.out + c];
              });
          if (args.bias != nullptr) value += args.bias[c];
          sums[c] = value;
        }
        Finish(args, sums.data(), y);
      }
    }
  }
}

}  // namespace sfmamba::kernels
