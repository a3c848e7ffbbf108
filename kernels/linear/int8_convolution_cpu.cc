#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/linear/gelu.h"
#include "kernels/linear/int8_convolution.h"

namespace sfmamba::kernels {
namespace {

// Returns the sum of products of output channel `o` at output pixel (row, x).
// Rows are counted over all maps.
int32_t Sum(const Int8ConvolutionArgs& args, int64_t row, int64_t x, int64_t o,
            CpuIsa isa) {
  const int64_t margin = args.kernel / 2;
  const int64_t width = args.width + 2 * margin;
  const int64_t y_height = (args.height + args.stride - 1) / args.stride;
  const int64_t map = row / y_height, y = row % y_height;
  const int64_t depth = int64_t{args.kernel} * args.kernel * args.in;
  int32_t sum = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const int64_t tap = k / args.in, c = k % args.in;
    const int64_t in_y =
        map * (args.height + 2 * margin) + y * args.stride + tap / args.kernel;
    const int64_t in_x = x * args.stride + tap % args.kernel;
    sum += (args.x[(in_y * width + in_x) * args.in + c] - 128) *
           args.weights.values[Int8WeightIndex(depth, o, k, isa)];
  }
  return sum;
}

float Activate(Int8Activation activation, float value) {
  switch (activation) {
    case Int8Activation::kNone:
      break;
    case Int8Activation::kRelu:
      return value < 0 ? 0 : value;
    case Int8Activation::kRelu6:
      return value < 0 ? 0 : value > 6 ? 6 : value;
    case Int8Activation::kGeluTanh:
      GeluTanhCpu<float>({1, 1, &value, 1, &value, 1}, CpuIsa::kScalar);
      break;
  }
  return value;
}

}  // namespace

Int8ConvolutionArgs SliceOutputs(Int8ConvolutionArgs args, int64_t begin,
                                 int64_t end) {
  args.out = static_cast<int>(end - begin);
  args.weights.values += begin * args.kernel * args.kernel * args.in;
  args.weights.scales += begin;
  args.weights.excess += begin;
  if (args.bias != nullptr) args.bias += begin;
  args.y += begin;
  return args;
}

void QuantizeMapRowsScalar(const QuantizeMapsArgs& args, int64_t begin,
                           int64_t end) {
  const int64_t height = args.height + 2 * args.margin;
  const int64_t width = args.width + 2 * args.margin;
  const auto inside = [&](int64_t y, int64_t x) {
    return y >= 0 && y < args.height && x >= 0 && x < args.width;
  };
  for (int64_t row = begin; row < end; ++row) {
    const int64_t map = row / height, y = row % height - args.margin;
    const QuantizeScale scale(args.largest[map]);
    uint8_t* values = args.values + row * width * args.channels;
    for (int64_t x = -args.margin; x < args.width + args.margin; ++x) {
      const int64_t pixel = (map * args.height + y) * args.width + x;
      for (int64_t c = 0; c < args.channels; ++c, ++values) {
        *values = 128;
        if (!inside(y, x) || std::isnan(scale.scale)) continue;
        const float value = args.x[pixel * args.channels + c];
        *values = static_cast<uint8_t>(128 + std::lrint(value * scale.inverse));
      }
    }
  }
}

void QuantizeMapRowsCpu(const QuantizeMapsArgs& args, int64_t begin,
                        int64_t end, CpuIsa isa) {
  switch (Int8InstructionsOf(isa)) {
    case Int8Instructions::kAvx512Vnni:
      return QuantizeMapRowsAvx512(args, begin, end);
    case Int8Instructions::kAvxVnni:
      return QuantizeMapRowsAvxVnni(args, begin, end);
    case Int8Instructions::kNone:
      return QuantizeMapRowsScalar(args, begin, end);
  }
}

void Int8ConvolutionScalar(const Int8ConvolutionArgs& args, int64_t begin,
                           int64_t end, CpuIsa isa) {
  const int64_t y_height = (args.height + args.stride - 1) / args.stride;
  const int64_t y_width = (args.width + args.stride - 1) / args.stride;
  for (int64_t row = begin; row < end; ++row) {
    const float scale = QuantizeScale(args.largest[row / y_height]).scale;
    for (int64_t x = 0; x < y_width; ++x) {
      float* const y = args.y + (row * y_width + x) * args.y_stride;
      for (int64_t o = 0; o < args.out; ++o) {
        const float bias = args.bias == nullptr ? 0 : args.bias[o];
        const float sum = static_cast<float>(Sum(args, row, x, o, isa));
        const float value =
            Activate(args.activation,
                     std::fma(sum * scale, args.weights.scales[o], bias));
        y[o] = args.add ? y[o] + value : value;
      }
    }
  }
}

void Int8ConvolutionCpu(const Int8ConvolutionArgs& args, int64_t begin,
                        int64_t end, CpuIsa isa) {
  switch (Int8InstructionsOf(isa)) {
    case Int8Instructions::kAvx512Vnni:
      return Int8ConvolutionAvx512(args, begin, end);
    case Int8Instructions::kAvxVnni:
      return Int8ConvolutionAvxVnni(args, begin, end);
    case Int8Instructions::kNone:
      return Int8ConvolutionScalar(args, begin, end, isa);
  }
}

}  // namespace sfmamba::kernels
