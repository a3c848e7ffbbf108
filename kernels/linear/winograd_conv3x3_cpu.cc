#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "kernels/linear/gelu.h"
#include "kernels/linear/packed_gemm.h"
#include "kernels/linear/winograd_conv3x3.h"

namespace sfmamba::kernels {
namespace {

constexpr int kPositions = 36;
// A cache line of padding after each of the 36 matrices. Without it, a tile's
// values in all of them could map to the same cache set.
constexpr int64_t kSkew = 16;

// Uninitialised floats, aligned to a cache line.
constexpr std::align_val_t kLine{64};
struct Free {
  void operator()(float* values) const { ::operator delete[](values, kLine); }
};
using Floats = std::unique_ptr<float[], Free>;
Floats Allocate(int64_t count) {
  return Floats(
      static_cast<float*>(::operator new[](count * sizeof(float), kLine)));
}

// The method's matrices for its points: B^T, G and A^T.
constexpr double kA = kWinogradA, kB = kWinogradB;
constexpr double kA2 = kA * kA, kB2 = kB * kB;
constexpr float kInput[6][6] = {
    {kA2 * kB2, 0, -kA2 - kB2, 0, 1, 0}, {0, -kA* kB2, -kB2, kA, 1, 0},
    {0, kA* kB2, -kB2, -kA, 1, 0},       {0, -kB* kA2, -kA2, kB, 1, 0},
    {0, kB* kA2, -kA2, -kB, 1, 0},       {0, kA2* kB2, 0, -kA2 - kB2, 0, 1}};
constexpr double kScale0 = 1 / (kA2 * kB2);
constexpr double kScaleA = 1 / (2 * kA2 * (kA2 - kB2));
constexpr double kScaleB = 1 / (2 * kB2 * (kB2 - kA2));
constexpr double kWeights[6][3] = {{kScale0, 0, 0},
                                   {kScaleA, kScaleA* kA, kScaleA* kA2},
                                   {kScaleA, -kScaleA* kA, kScaleA* kA2},
                                   {kScaleB, kScaleB* kB, kScaleB* kB2},
                                   {kScaleB, -kScaleB* kB, kScaleB* kB2},
                                   {0, 0, 1}};
constexpr float kOutput[4][6] = {{1, 1, 1, 1, 1, 0},
                                 {0, kA, -kA, kB, -kB, 0},
                                 {0, kA2, kA2, kB2, kB2, 0},
                                 {0, kA* kA2, -kA* kA2, kB* kB2, -kB* kB2, 1}};

// Returns element (i, j) of matrix * values * matrix^T, where at(a, b) returns
// element (a, b) of `values`.
template <typename T, int kRows, int kSize, typename At>
T Transformed(const T (&matrix)[kRows][kSize], int i, int j, At at) {
  T sum = 0;
  for (int a = 0; a < kSize; ++a) {
    T row = 0;
    for (int b = 0; b < kSize; ++b) row += matrix[j][b] * at(a, b);
    sum += matrix[i][a] * row;
  }
  return sum;
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

// Computes a block's 36 matrix products, one for each position in a tile.
void Multiply(const WinogradConv3x3Args& args, const WinogradBlock& block,
              CpuIsa isa) {
  const int64_t size = PackedWeightsSize(args.in, args.out, isa);
  for (int position = 0; position < kPositions; ++position) {
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

// Applies the activation to a pixel's sums, which include the bias, and writes
// or adds them to y. Overwrites `sums`.
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

int64_t WinogradWeightsSize(int in, int out, CpuIsa isa) {
  return kPositions * PackedWeightsSize(in, out, isa);
}

void PackWinogradWeights(const float* weights, int in, int out, float* packed,
                         CpuIsa isa) {
  std::vector<float> position(int64_t{in} * out);
  for (int p = 0; p < kPositions; ++p) {
    for (int64_t k = 0; k < int64_t{in} * out; ++k) {
      const float* taps = weights + 9 * k;
      position[k] = static_cast<float>(
          Transformed(kWeights, p / 6, p % 6,
                      [&](int a, int b) { return taps[3 * a + b]; }));
    }
    PackWeights(position.data(), in, out, packed, isa);
    packed += PackedWeightsSize(in, out, isa);
  }
}

int64_t WinogradTiles(const WinogradConv3x3Args& args) {
  return int64_t{args.count} * ((args.height + 3) / 4) * ((args.width + 3) / 4);
}

void WinogradConv3x3Cpu(const WinogradConv3x3Args& args, int64_t begin,
                        int64_t end, CpuIsa isa) {
  const int64_t largest = std::min(kWinogradBlock, end - begin);
  const int64_t input_stride = largest * args.in + kSkew;
  const int64_t output_stride = largest * args.out + kSkew;
  const Floats inputs = Allocate(kPositions * input_stride);
  const Floats outputs = Allocate(kPositions * output_stride);
  const std::vector<float> padding(args.in);
  const int64_t tiles = end - begin;
  const int64_t blocks = (tiles + kWinogradBlock - 1) / kWinogradBlock;
  for (int64_t b = 0; b < blocks; ++b) {  // Blocks are nearly equal in size.
    const int64_t first = begin + tiles * b / blocks;
    const WinogradBlock block{
        first,         begin + tiles * (b + 1) / blocks - first,
        inputs.get(),  outputs.get(),
        input_stride,  output_stride,
        padding.data()};
    WinogradInput(args, block, isa);
    Multiply(args, block, isa);
    WinogradOutput(args, block, isa);
  }
}

void WinogradInputScalar(const WinogradConv3x3Args& args,
                         const WinogradBlock& block) {
  for (int64_t t = 0; t < block.count; ++t) {
    const WinogradTile tile = WinogradTileAt(args, block.first + t);
    for (int p = 0; p < kPositions; ++p) {
      for (int c = 0; c < args.in; ++c) {
        block.inputs[p * block.input_stride + t * args.in + c] =
            Transformed(kInput, p / 6, p % 6, [&](int a, int b) {
              return WinogradPixel(args, tile.map, tile.row + a - 1,
                                   tile.column + b - 1, block.padding)[c];
            });
      }
    }
  }
}

void WinogradOutputScalar(const WinogradConv3x3Args& args,
                          const WinogradBlock& block) {
  std::vector<float> sums(args.out);
  for (int64_t t = 0; t < block.count; ++t) {
    const WinogradTile tile = WinogradTileAt(args, block.first + t);
    for (int i = 0; i < 4 && tile.row + i < args.height; ++i) {
      for (int j = 0; j < 4 && tile.column + j < args.width; ++j) {
        float* y =
            args.y + ((tile.map * args.height + tile.row + i) * args.width +
                      tile.column + j) *
                         args.out;
        for (int c = 0; c < args.out; ++c) {
          float value = Transformed(kOutput, i, j, [&](int a, int b) {
            return block
                .outputs[(6 * a + b) * block.output_stride + t * args.out + c];
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
