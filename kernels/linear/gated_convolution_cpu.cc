#include <cmath>

#include "kernels/linear/gated_convolution.h"

namespace sfmamba::kernels {
namespace {

constexpr int kReach = kGatedTaps / 2;

float Gate(GateActivation activation, float v) {
  return activation == GateActivation::kSilu
             ? v / (1.0f + std::exp(-v))
             : 0.5f * v * (1.0f + std::erf(v * 0.70710678f));
}

// Returns the convolution plus bias of channel `c`, in [0, conv), at one pixel
// of `map`.
template <typename T>
float Convolve(const GatedConvolutionArgs<T>& args, const T* map, int64_t row,
               int64_t column, int c) {
  const int64_t channels = 2 * int64_t{args.hidden};
  float sum = args.bias[c];
  for (int r = 0; r < kGatedTaps; ++r) {
    const int64_t y = row + r - kReach;
    if (y < 0 || y >= args.height) continue;
    for (int t = 0; t < kGatedTaps; ++t) {
      const int64_t x = column + t - kReach;
      if (x < 0 || x >= args.width) continue;
      sum +=
          args.weight[(r * kGatedTaps + t) * args.conv + c] *
          static_cast<float>(
              map[(y * args.width + x) * channels + channels - args.conv + c]);
    }
  }
  return sum;
}

}  // namespace

template <typename T>
void GatedConvolutionScalar(const GatedConvolutionArgs<T>& args, int64_t begin,
                            int64_t end) {
  const int plain = args.hidden - args.conv;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t image = row / args.height;
    const T* map =
        args.x + image * args.height * args.width * 2 * int64_t{args.hidden};
    for (int64_t column = 0; column < args.width; ++column) {
      const int64_t pixel = row * args.width + column;
      const T* x = args.x + pixel * 2 * args.hidden;
      for (int c = 0; c < args.hidden; ++c) {
        const float value = c < plain ? static_cast<float>(x[args.hidden + c])
                                      : Convolve(args, map, row % args.height,
                                                 column, c - plain);
        args.y[pixel * args.hidden + c] = static_cast<T>(
            Gate(args.activation, static_cast<float>(x[c])) * value);
      }
    }
  }
}

template <typename T>
void GatedConvolutionCpu(const GatedConvolutionArgs<T>& args, int64_t begin,
                         int64_t end, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return GatedConvolutionScalar(args, begin, end);
    case CpuIsa::kAvx2:
      return GatedConvolutionAvx2(args, begin, end);
    case CpuIsa::kAvx512:
      return GatedConvolutionAvx512(args, begin, end);
  }
}

template void GatedConvolutionCpu(const GatedConvolutionArgs<float>&, int64_t,
                                  int64_t, CpuIsa);
template void GatedConvolutionCpu(const GatedConvolutionArgs<BFloat16>&,
                                  int64_t, int64_t, CpuIsa);

}  // namespace sfmamba::kernels
