#include "kernels/linear/gemm_convolution.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/linear/packed_gemm.h"

namespace sfmamba::kernels {
namespace {

// The most gathered floats and pixels in a block, so that it stays in the
// cache while all weights pass by.
constexpr int64_t kBlockFloats = 1 << 18;
constexpr int64_t kBlockPixels = 128;

struct OutputSize {
  template <typename W>
  explicit OutputSize(const GemmConvolutionArgs<W>& args)
      : height((args.height + args.stride - 1) / args.stride),
        width((args.width + args.stride - 1) / args.stride) {}
  int64_t height, width;
};

// An output pixel, which steps to the next one in the order of y.
struct Pixel {
  Pixel(const OutputSize& size, int64_t index)
      : size(size),
        map(index / (size.height * size.width)),
        row(index / size.width % size.height),
        column(index % size.width) {}

  void Step() {
    if (++column < size.width) return;
    column = 0;
    if (++row < size.height) return;
    row = 0;
    ++map;
  }

  const OutputSize size;
  int64_t map, row, column;
};

void Copy(const float* from, int64_t count, float* to, CpuIsa) {
  std::copy_n(from, count, to);
}
void Copy(const float* from, int64_t count, BFloat16* to, CpuIsa isa) {
  RoundToBf16(from, count, to, isa);
}

// Writes the kernel * kernel * in inputs of an output pixel to `row`, in the
// type that they are multiplied in.
template <typename W>
void Gather(const GemmConvolutionArgs<W>& args, const Pixel& pixel, CpuIsa isa,
            W* row) {
  const int64_t top = pixel.row * args.stride - args.kernel / 2;
  const int64_t left = pixel.column * args.stride - args.kernel / 2;
  const int64_t first = std::max<int64_t>(0, -left);
  const int64_t last = std::min<int64_t>(args.kernel, args.width - left);
  for (int64_t i = 0; i < args.kernel; ++i, row += args.kernel * args.in) {
    const int64_t y = top + i;
    if (y < 0 || y >= args.height) {
      std::fill_n(row, args.kernel * args.in, W());
      continue;
    }
    if (first > 0) std::fill_n(row, first * args.in, W());
    const float* from =
        args.x +
        ((pixel.map * args.height + y) * args.width + left + first) * args.in;
    Copy(from, (last - first) * args.in, row + first * args.in, isa);
    if (last < args.kernel) {
      std::fill_n(row + last * args.in, (args.kernel - last) * args.in, W());
    }
  }
}

void SetInputs(const float* rows, PackedGemmArgs* product) {
  product->x = rows;
}
void SetInputs(const BFloat16* rows, Bf16GemmArgs* product) {
  product->x_bf16 = rows;
}

template <typename W>
void Clamp(const GemmConvolutionArgs<W>& args, float* y, int64_t count) {
  if (std::isinf(args.low) && std::isinf(args.high)) return;
  for (int64_t i = 0; i < count; ++i) {
    const float value = y[i] < args.low ? args.low : y[i];
    y[i] = value > args.high ? args.high : value;
  }
}

}  // namespace

template <typename W>
int64_t GemmConvolutionPixels(const GemmConvolutionArgs<W>& args) {
  const OutputSize size(args);
  return args.count * size.height * size.width;
}
template int64_t GemmConvolutionPixels(const GemmConvolutionArgs<float>&);
template int64_t GemmConvolutionPixels(const GemmConvolutionArgs<BFloat16>&);

template <typename W>
void GemmConvolutionCpu(const GemmConvolutionArgs<W>& args, int64_t begin,
                        int64_t end, CpuIsa isa) {
  const int64_t row = int64_t{args.kernel} * args.kernel * args.in;
  // A kernel of one pixel reads its rows where they are.
  const bool gathers = args.kernel > 1 || args.stride > 1;
  const int64_t most =
      std::clamp<int64_t>(kBlockFloats / row, 16, kBlockPixels);
  const int64_t blocks = (end - begin + most - 1) / most;
  const std::unique_ptr<W[]> rows(  // Floats are not initialised.
      gathers ? new W[std::min(most, end - begin) * row] : nullptr);
  GemmArgs<W> product{};
  product.in = row;
  product.out = args.out;
  product.x_stride = row;
  product.weights = args.weights;
  product.bias = args.bias;
  product.add = args.add;
  product.y_stride = args.out;
  Pixel pixel(OutputSize(args), begin);
  for (int64_t b = 0; b < blocks; ++b) {  // Blocks are nearly equal in size.
    const int64_t first = begin + (end - begin) * b / blocks;
    product.rows = begin + (end - begin) * (b + 1) / blocks - first;
    if (gathers) {
      SetInputs(rows.get(), &product);
    } else {
      product.x = args.x + first * args.in;
    }
    product.y = args.y + first * args.out;
    for (int64_t i = 0; gathers && i < product.rows; ++i, pixel.Step()) {
      Gather(args, pixel, isa, rows.get() + i * row);
    }
    PackedGemmCpu(product, isa);
    Clamp(args, product.y, product.rows * args.out);
  }
}
template void GemmConvolutionCpu(const GemmConvolutionArgs<float>&, int64_t,
                                 int64_t, CpuIsa);
template void GemmConvolutionCpu(const GemmConvolutionArgs<BFloat16>&, int64_t,
                                 int64_t, CpuIsa);

}  // namespace sfmamba::kernels
