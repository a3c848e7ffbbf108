#include "kernels/linear/depthwise_convolution.h"

namespace sfmamba::kernels {
namespace {

float Pixel(const DepthwiseConvolutionArgs& args, const float* map, int64_t top,
            int64_t left, int channel) {
  float sum = args.bias != nullptr ? args.bias[channel] : 0.0f;
  for (int r = 0; r < args.kernel; ++r) {
    if (top + r < 0 || top + r >= args.height) continue;
    for (int t = 0; t < args.kernel; ++t) {
      if (left + t < 0 || left + t >= args.width) continue;
      sum += args.weight[(r * args.kernel + t) * args.channels + channel] *
             map[((top + r) * args.width + left + t) * args.channels + channel];
    }
  }
  if (sum < args.low) sum = args.low;
  return sum > args.high ? args.high : sum;
}

int64_t Height(const DepthwiseConvolutionArgs& args) {
  return (args.height + args.stride - 1) / args.stride;
}

}  // namespace

int64_t DepthwiseConvolutionRows(const DepthwiseConvolutionArgs& args) {
  return args.count * Height(args);
}

void DepthwiseConvolutionScalar(const DepthwiseConvolutionArgs& args,
                                int64_t begin, int64_t end) {
  const int64_t height = Height(args);
  const int64_t width = (args.width + args.stride - 1) / args.stride;
  for (int64_t row = begin; row < end; ++row) {
    const float* map =
        args.x + row / height * args.height * args.width * args.channels;
    const int64_t top = row % height * args.stride - args.kernel / 2;
    for (int64_t i = 0; i < width; ++i) {
      for (int c = 0; c < args.channels; ++c) {
        args.y[(row * width + i) * args.channels + c] =
            Pixel(args, map, top, i * args.stride - args.kernel / 2, c);
      }
    }
  }
}

void DepthwiseConvolutionCpu(const DepthwiseConvolutionArgs& args,
                             int64_t begin, int64_t end, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return DepthwiseConvolutionScalar(args, begin, end);
    case CpuIsa::kAvx2:
      return DepthwiseConvolutionAvx2(args, begin, end);
    case CpuIsa::kAvx512:
      return DepthwiseConvolutionAvx512(args, begin, end);
  }
}

}  // namespace sfmamba::kernels
