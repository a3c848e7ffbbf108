#include "kernels/linear/gemm_convolution.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>

#include "kernels/linear/gelu.h"
#include "kernels/linear/packed_gemm.h"

namespace sfmamba::kernels {
namespace {

// The maximum number of gathered floats and of pixels in a block. These limits
// keep a block in the cache while it is multiplied by all weights.
constexpr int64_t kBlockFloats = 1 << 18;
constexpr int64_t kBlockPixels = 128;

struct OutputSize {
  template <typename W>
  explicit OutputSize(const GemmConvolutionArgs<W>& args)
      : height((args.height + args.stride - 1) / args.stride),
        width((args.width + args.stride - 1) / args.stride) {}
  int64_t height, width;
};

// The position of an output pixel. Step() moves to the next pixel in the order
// of y.
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

bool UsesTiles(int64_t kernel, CpuIsa isa) {
  static const bool amx = HasAmxBf16();
  return amx && isa == CpuIsa::kAvx512 && kernel > 1;
}

template <typename T>
void Copy(const T* from, int64_t count, T* to, CpuIsa) {
  std::copy_n(from, count, to);
}
void Copy(const float* from, int64_t count, BFloat16* to, CpuIsa isa) {
  RoundToBf16(from, count, to, isa);
}

// The type of inputs that are multiplied by weights of type W.
template <typename W>
using InputOf =
    std::conditional_t<std::is_same_v<W, BFloat16>, BFloat16, float>;

// Copies the kernel * kernel * in inputs of an output pixel from the maps `x`
// to `row`. Rounds them to bf16 if InputOf<W> is BFloat16. Padding becomes 0.
template <typename W, typename X>
void Gather(const GemmConvolutionArgs<W>& args, const X* x, const Pixel& pixel,
            CpuIsa isa, InputOf<W>* row) {
  const int64_t top = pixel.row * args.stride - args.kernel / 2;
  const int64_t left = pixel.column * args.stride - args.kernel / 2;
  const int64_t first = std::max<int64_t>(0, -left);
  const int64_t last = std::min<int64_t>(args.kernel, args.width - left);
  for (int64_t i = 0; i < args.kernel; ++i, row += args.kernel * args.in) {
    const int64_t y = top + i;
    if (y < 0 || y >= args.height) {
      std::fill_n(row, args.kernel * args.in, InputOf<W>());
      continue;
    }
    if (first > 0) std::fill_n(row, first * args.in, InputOf<W>());
    const X* from =
        x +
        ((pixel.map * args.height + y) * args.width + left + first) * args.in;
    Copy(from, (last - first) * args.in, row + first * args.in, isa);
    if (last < args.kernel) {
      std::fill_n(row + last * args.in, (args.kernel - last) * args.in,
                  InputOf<W>());
    }
  }
}

template <typename W>
void SetInputs(const float* rows, GemmArgs<W>* product) {
  product->x = rows;
}
void SetInputs(const BFloat16* rows, Bf16GemmArgs* product) {
  product->x_bf16 = rows;
}

// Applies the activation to y [rows, out], the sums of `rows` pixels. Rows are
// `stride` floats apart.
template <typename W>
void Activate(const GemmConvolutionArgs<W>& args, int64_t rows, CpuIsa isa,
              float* y, int64_t stride) {
  if (args.gelu) {
    GeluTanhCpu<float>({rows, args.out, y, stride, y, stride}, isa);
  }
  if (std::isinf(args.low) && std::isinf(args.high)) return;
  for (int64_t row = 0; row < rows; ++row, y += stride) {
    for (int64_t i = 0; i < args.out; ++i) {
      const float value = y[i] < args.low ? args.low : y[i];
      y[i] = value > args.high ? args.high : value;
    }
  }
}

// Computes output pixels [begin, end). Gathers each pixel's inputs in a row,
// and multiplies the rows by the weights.
template <typename W>
void ConvolveGathered(const GemmConvolutionArgs<W>& args, int64_t begin,
                      int64_t end, CpuIsa isa) {
  const int64_t row = int64_t{args.kernel} * args.kernel * args.in;
  // A 1x1 kernel with stride 1 needs no gathering: each pixel of x is a row.
  const bool gathers = args.kernel > 1 || args.stride > 1;
  const int64_t most =
      std::clamp<int64_t>(kBlockFloats / row, 16, kBlockPixels);
  const int64_t blocks = (end - begin + most - 1) / most;
  // These arrays are not initialised, because that would take time.
  const std::unique_ptr<InputOf<W>[]> rows(
      gathers ? new InputOf<W>[std::min(most, end - begin) * row] : nullptr);
  const std::unique_ptr<float[]> sums(
      args.y_bf16 != nullptr ? new float[std::min(most, end - begin) * args.out]
                             : nullptr);
  GemmArgs<W> product{};
  product.in = row;
  product.out = args.out;
  product.x_stride = row;
  product.weights = args.weights;
  product.bias = args.bias;
  product.add = args.add;
  product.y_stride = sums != nullptr ? args.out : args.y_stride;
  Pixel pixel(OutputSize(args), begin);
  for (int64_t b = 0; b < blocks; ++b) {  // Blocks are nearly equal in size.
    const int64_t first = begin + (end - begin) * b / blocks;
    product.rows = begin + (end - begin) * (b + 1) / blocks - first;
    if (gathers) {
      SetInputs(rows.get(), &product);
    } else if (args.x_bf16 != nullptr) {
      product.x_bf16 = args.x_bf16 + first * args.in;
    } else {
      product.x = args.x + first * args.in;
    }
    product.y = sums != nullptr ? sums.get() : args.y + first * args.y_stride;
    for (int64_t i = 0; gathers && i < product.rows; ++i, pixel.Step()) {
      InputOf<W>* to = rows.get() + i * row;
      if constexpr (std::is_same_v<W, BFloat16>) {
        if (args.x_bf16 != nullptr) {
          Gather(args, args.x_bf16, pixel, isa, to);
          continue;
        }
      }
      Gather(args, args.x, pixel, isa, to);
    }
    PackedGemmCpu(product, isa);
    Activate(args, product.rows, isa, product.y, product.y_stride);
    for (int64_t i = 0; sums != nullptr && i < product.rows; ++i) {
      RoundToBf16(sums.get() + i * args.out, args.out,
                  args.y_bf16 + (first + i) * args.y_stride, isa);
    }
  }
}

}  // namespace

template <>
ConvolutionRuns RunsOf<float>(int64_t in, int64_t kernel, CpuIsa) {
  const int64_t length = kernel * kernel * in;
  return {1, length, length};
}
template <>
ConvolutionRuns RunsOf<SplitFloat>(int64_t in, int64_t kernel, CpuIsa isa) {
  return RunsOf<float>(in, kernel, isa);
}
template <>
ConvolutionRuns RunsOf<BFloat16>(int64_t in, int64_t kernel, CpuIsa isa) {
  constexpr int64_t kStep = 32;  // Equals kStepInputs of amx_tiles.h.
  if (!UsesTiles(kernel, isa)) return RunsOf<float>(in, kernel, isa);
  if (kernel * in <= kStep) return {kernel, kernel * in, kStep};
  return {kernel * kernel, in, (in + kStep - 1) / kStep * kStep};
}

template <typename W>
GemmConvolutionArgs<W> SliceOutputs(GemmConvolutionArgs<W> args, int64_t begin,
                                    int64_t end, CpuIsa isa) {
  args.weights += PackedWeightsSize<W>(
      RunsOf<W>(args.in, args.kernel, isa).depth(), begin, isa);
  if (args.bias != nullptr) args.bias += begin;
  if (args.y != nullptr) args.y += begin;
  if (args.y_bf16 != nullptr) args.y_bf16 += begin;
  args.out = static_cast<int>(end - begin);
  return args;
}
template GemmConvolutionArgs<float> SliceOutputs(GemmConvolutionArgs<float>,
                                                 int64_t, int64_t, CpuIsa);
template GemmConvolutionArgs<BFloat16> SliceOutputs(
    GemmConvolutionArgs<BFloat16>, int64_t, int64_t, CpuIsa);
template GemmConvolutionArgs<SplitFloat> SliceOutputs(
    GemmConvolutionArgs<SplitFloat>, int64_t, int64_t, CpuIsa);

template <typename W>
int64_t GemmConvolutionPixels(const GemmConvolutionArgs<W>& args) {
  const OutputSize size(args);
  return args.count * size.height * size.width;
}
template int64_t GemmConvolutionPixels(const GemmConvolutionArgs<float>&);
template int64_t GemmConvolutionPixels(const GemmConvolutionArgs<BFloat16>&);
template int64_t GemmConvolutionPixels(const GemmConvolutionArgs<SplitFloat>&);

template <typename W>
void GemmConvolutionCpu(const GemmConvolutionArgs<W>& args, int64_t begin,
                        int64_t end, CpuIsa isa) {
  if constexpr (std::is_same_v<W, BFloat16>) {
    if (UsesTiles(args.kernel, isa)) {
      return GemmConvolutionAmx(args, begin, end);
    }
  }
  ConvolveGathered(args, begin, end, isa);
}
template void GemmConvolutionCpu(const GemmConvolutionArgs<float>&, int64_t,
                                 int64_t, CpuIsa);
template void GemmConvolutionCpu(const GemmConvolutionArgs<BFloat16>&, int64_t,
                                 int64_t, CpuIsa);
template void GemmConvolutionCpu(const GemmConvolutionArgs<SplitFloat>&,
                                 int64_t, int64_t, CpuIsa);

}  // namespace sfmamba::kernels
