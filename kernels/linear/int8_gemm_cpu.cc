#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/linear/gelu.h"
#include "kernels/linear/int8_gemm.h"

namespace sfmamba::kernels {
namespace {

constexpr int64_t kQuad = 4;

int64_t RoundUp(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// Writes `value` to an output, or adds it if args.add is true.
void Finish(const Int8GemmArgs& args, int64_t row, int64_t o, float value) {
  float& y = args.y[row * args.y_stride + o];
  y = args.add ? y + value : value;
}

void ApplyGelu(const Int8GemmArgs& args, CpuIsa isa) {
  GeluErfCpu<float>(
      {args.rows, args.out, args.y, args.y_stride, args.y, args.y_stride}, isa);
}

// Multiplies rows that contain an infinity or a NaN, as floats.
void MultiplyAsFloats(const Int8GemmArgs& args, CpuIsa isa) {
  const int8_t* const weights = args.weights.values;
  for (int64_t i = 0; i < args.rows; ++i) {
    for (int64_t o = 0; o < args.out; ++o) {
      float sum = 0;
      for (int64_t k = 0; k < args.in; ++k) {
        sum += args.x[i * args.x_stride + k] *
               weights[Int8WeightIndex(args.in, o, k, isa)];
      }
      const float bias = args.bias == nullptr ? 0 : args.bias[o];
      Finish(args, i, o, sum * args.weights.scales[o] + bias);
    }
  }
  if (args.gelu) ApplyGelu(args, isa);
}

void MultiplyFinite(const Int8GemmArgs& args, CpuIsa isa) {
  switch (Int8InstructionsOf(isa)) {
    case Int8Instructions::kAvx512Vnni:
      return Int8GemmAvx512(args);
    case Int8Instructions::kAvxVnni:
      return Int8GemmAvxVnni(args);
    case Int8Instructions::kNone:
      return Int8GemmScalar(args, isa);
  }
}

}  // namespace

Int8Instructions Int8InstructionsOf(CpuIsa isa) {
  static const bool avx512 = HasAvx512Vnni(), avx = HasAvxVnni();
  if (avx512 && isa == CpuIsa::kAvx512) return Int8Instructions::kAvx512Vnni;
  return avx && isa == CpuIsa::kAvx2 ? Int8Instructions::kAvxVnni
                                     : Int8Instructions::kNone;
}

float LargestMagnitudeScalar(const float* x, int64_t count) {
  float largest = 0;
  for (int64_t k = 0; k < count; ++k) {
    if (!std::isfinite(x[k])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::fabs(x[k]));
  }
  return largest;
}

float LargestMagnitudeCpu(const float* x, int64_t count, CpuIsa isa) {
  switch (Int8InstructionsOf(isa)) {
    case Int8Instructions::kAvx512Vnni:
      return LargestMagnitudeAvx512(x, count);
    case Int8Instructions::kAvxVnni:
      return LargestMagnitudeAvxVnni(x, count);
    case Int8Instructions::kNone:
      break;
  }
  return LargestMagnitudeScalar(x, count);
}

QuantizeScale::QuantizeScale(float largest)
    : scale(largest < kSmallest ? 0 : largest / 127),
      inverse(largest < kSmallest ? 0 : 127 / largest) {}

void QuantizeRowsScalar(const QuantizeArgs& args) {
  const int64_t stride = QuantizedStride(args.in);
  for (int64_t i = 0; i < args.rows; ++i) {
    const float* const x = args.x + i * args.x_stride;
    uint8_t* const values = args.values + i * stride;
    const QuantizeScale scale(LargestMagnitudeScalar(x, args.in));
    args.scales[i] = scale.scale;
    std::fill_n(values, stride, uint8_t{128});
    if (std::isnan(scale.scale)) continue;
    for (int64_t k = 0; k < args.in; ++k) {
      values[k] = static_cast<uint8_t>(128 + std::lrint(x[k] * scale.inverse));
    }
  }
}

QuantizeArgs SliceRows(QuantizeArgs args, int64_t begin, int64_t end) {
  args.rows = end - begin;
  args.x += begin * args.x_stride;
  args.values += begin * QuantizedStride(args.in);
  args.scales += begin;
  return args;
}

void QuantizeRowsCpu(const QuantizeArgs& args, CpuIsa isa) {
  switch (Int8InstructionsOf(isa)) {
    case Int8Instructions::kAvx512Vnni:
      return QuantizeRowsAvx512(args);
    case Int8Instructions::kAvxVnni:
      return QuantizeRowsAvxVnni(args);
    case Int8Instructions::kNone:
      return QuantizeRowsScalar(args);
  }
}

int64_t Int8PanelWidth(CpuIsa isa) { return isa == CpuIsa::kAvx512 ? 32 : 16; }

int64_t Int8WeightIndex(int64_t in, int64_t o, int64_t k, CpuIsa isa) {
  const int64_t width = Int8PanelWidth(isa);
  return o / width * width * RoundUp(in, kQuad) + k / kQuad * width * kQuad +
         o % width * kQuad + k % kQuad;
}

int64_t Int8PackedOutputs(int64_t out, CpuIsa isa) {
  return RoundUp(out, Int8PanelWidth(isa));
}

int64_t Int8PackedSize(int64_t in, int64_t out, CpuIsa isa) {
  return Int8PackedOutputs(out, isa) * RoundUp(in, kQuad);
}

void PackInt8Weights(const float* weights, int64_t in, int64_t out,
                     const Int8Weights& packed, CpuIsa isa) {
  std::fill_n(packed.values, Int8PackedSize(in, out, isa), int8_t{0});
  std::fill_n(packed.scales, Int8PackedOutputs(out, isa), 0.0f);
  std::fill_n(packed.excess, Int8PackedOutputs(out, isa), 0);
  for (int64_t o = 0; o < out; ++o) {
    const float* const from = weights + o * in;
    const QuantizeScale scale(LargestMagnitudeScalar(from, in));
    packed.scales[o] = scale.scale;
    if (std::isnan(scale.scale)) continue;
    int32_t sum = 0;
    for (int64_t k = 0; k < in; ++k) {
      const int8_t value =
          static_cast<int8_t>(std::lrint(from[k] * scale.inverse));
      packed.values[Int8WeightIndex(in, o, k, isa)] = value;
      sum += value;
    }
    packed.excess[o] = 128 * sum;
  }
}

Int8GemmArgs SliceRows(Int8GemmArgs args, int64_t begin, int64_t end) {
  args.rows = end - begin;
  args.x += begin * args.x_stride;
  args.x_values += begin * QuantizedStride(args.in);
  args.x_scales += begin;
  args.y += begin * args.y_stride;
  return args;
}

Int8GemmArgs SliceOutputs(Int8GemmArgs args, int64_t begin, int64_t end) {
  args.out = end - begin;
  args.weights.values += begin * RoundUp(args.in, kQuad);
  args.weights.scales += begin;
  args.weights.excess += begin;
  if (args.bias != nullptr) args.bias += begin;
  args.y += begin;
  return args;
}

void Int8GemmScalar(const Int8GemmArgs& args, CpuIsa isa) {
  const int8_t* const weights = args.weights.values;
  for (int64_t i = 0; i < args.rows; ++i) {
    const uint8_t* const x = args.x_values + i * QuantizedStride(args.in);
    for (int64_t o = 0; o < args.out; ++o) {
      int32_t sum = 0;
      for (int64_t k = 0; k < args.in; ++k) {
        sum += (x[k] - 128) * weights[Int8WeightIndex(args.in, o, k, isa)];
      }
      const float bias = args.bias == nullptr ? 0 : args.bias[o];
      Finish(args, i, o,
             std::fma(static_cast<float>(sum) * args.x_scales[i],
                      args.weights.scales[o], bias));
    }
  }
  if (args.gelu) ApplyGelu(args, CpuIsa::kScalar);
}

void Int8GemmCpu(const Int8GemmArgs& args, CpuIsa isa) {
  const auto finite = [&](int64_t row) {
    return std::isfinite(args.x_scales[row]);
  };
  // Divides the rows into runs. All rows of a run are finite, or none is.
  for (int64_t begin = 0, end; begin < args.rows; begin = end) {
    const bool is_finite = finite(begin);
    for (end = begin + 1; end < args.rows && finite(end) == is_finite;) ++end;
    const Int8GemmArgs run = SliceRows(args, begin, end);
    is_finite ? MultiplyFinite(run, isa) : MultiplyAsFloats(run, isa);
  }
}

}  // namespace sfmamba::kernels
