#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/linear/gelu.h"
#include "kernels/linear/packed_gemm.h"

namespace sfmamba::kernels {
namespace {

// The number of outputs in a panel of floats: two vectors, but at least one
// cache line.
constexpr int64_t kPanel = 16, kPanelAvx512 = 32;
constexpr int64_t kPanelBf16 = 32, kPanelSplit = 32;
// The number of inputs in a step of AMX tiles. A panel of SplitFloats is padded
// with zeros to a multiple of this number of inputs.
constexpr int64_t kSplitStep = 32;
// The minimum number of inputs, and of outputs, for which a product with
// SplitFloat weights is faster than with float weights.
constexpr int64_t kFewestSplit = 64;

// Returns the number of inputs in a panel of weights of type W, with padding.
template <typename W>
int64_t PackedInputs(int64_t in) {
  return in;
}
template <>
int64_t PackedInputs<BFloat16>(int64_t in) {
  return (in + 1) / 2 * 2;
}
template <>
int64_t PackedInputs<SplitFloat>(int64_t in) {
  return (in + kSplitStep - 1) / kSplitStep * kSplitStep;
}

// Finishes one row's sums of a panel. Adds the bias to the sums.
//
// If args.y_bf16 is null, writes the sums to y, or adds them to y if args.add
// is true. GELU is then left to the caller. Otherwise applies GELU if args.gelu
// is true, rounds the sums to bf16, and writes them to args.y_bf16.
template <typename W>
void Finish(const GemmArgs<W>& args, int64_t row, int64_t first,
            int64_t columns, float* sums) {
  for (int64_t c = 0; c < columns && args.bias != nullptr; ++c) {
    sums[c] += args.bias[first + c];
  }
  const int64_t at = row * args.y_stride + first;
  if (args.y_bf16 != nullptr) {
    if (args.gelu) {
      GeluErfCpu<float>({1, columns, sums, columns, sums, columns},
                        CpuIsa::kScalar);
    }
    RoundToBf16(sums, columns, args.y_bf16 + at, CpuIsa::kScalar);
    return;
  }
  float* y = args.y + at;
  for (int64_t c = 0; c < columns; ++c) {
    y[c] = args.add ? y[c] + sums[c] : sums[c];
  }
}

// Returns the three bf16 parts of a finite value (see SplitFloat).
std::array<float, 3> Parts(float value) {
  std::array<float, 3> parts;
  for (float& part : parts) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    bits &= 0xffff0000;
    std::memcpy(&part, &bits, sizeof(bits));
    value -= part;
  }
  return parts;
}

// Returns x_value * weight as the sum of the six largest products of their
// parts, added up from small to large.
float SplitProduct(float x_value, float weight) {
  const std::array<float, 3> x = Parts(x_value), w = Parts(weight);
  return x[2] * w[0] + x[1] * w[1] + x[0] * w[2] + x[1] * w[0] + x[0] * w[1] +
         x[0] * w[0];
}

bool IsFinite(const float* x, int64_t count) {
  return std::all_of(x, x + count, [](float v) { return std::isfinite(v); });
}

// Computes the product with fp32 instructions, panel by panel. A panel of
// SplitFloats is a panel of floats, followed by zeros. A single panel can
// therefore be passed as floats. Several panels cannot, because of the zeros
// between them.
void MultiplyAsFloats(const SplitGemmArgs& args) {
  for (int64_t first = 0; first < args.out; first += kPanelSplit) {
    const SplitGemmArgs part =
        SliceOutputs(args, first, std::min(first + kPanelSplit, args.out));
    PackedGemmArgs panel{};
    panel.rows = part.rows;
    panel.in = part.in;
    panel.out = part.out;
    panel.x = part.x;
    panel.x_stride = part.x_stride;
    panel.weights = &part.weights->value;
    panel.bias = part.bias;
    panel.add = part.add;
    panel.y = part.y;
    panel.y_stride = part.y_stride;
    panel.gelu = part.gelu;
    PackedGemmCpu(panel, CpuIsa::kAvx512);
  }
}

template <typename W>
void ApplyGelu(const GemmArgs<W>& args, CpuIsa isa) {
  GeluErfCpu<float>(
      {args.rows, args.out, args.y, args.y_stride, args.y, args.y_stride}, isa);
}

}  // namespace

template <>
int64_t PanelWidth<float>(CpuIsa isa) {
  return isa == CpuIsa::kAvx512 ? kPanelAvx512 : kPanel;
}

template <>
int64_t PanelWidth<BFloat16>(CpuIsa) {
  return kPanelBf16;
}

template <>
int64_t PanelWidth<SplitFloat>(CpuIsa) {
  return kPanelSplit;
}

template <typename W>
int64_t PackedWeightsSize(int64_t in, int64_t out, CpuIsa isa) {
  const int64_t width = PanelWidth<W>(isa);
  return (out + width - 1) / width * width * PackedInputs<W>(in);
}
template int64_t PackedWeightsSize<float>(int64_t, int64_t, CpuIsa);
template int64_t PackedWeightsSize<BFloat16>(int64_t, int64_t, CpuIsa);
template int64_t PackedWeightsSize<SplitFloat>(int64_t, int64_t, CpuIsa);

template <>
void PackWeights(const WeightMatrix& weights, int64_t in, int64_t out,
                 float* packed, CpuIsa isa) {
  const int64_t width = PanelWidth(isa);
  for (int64_t first = 0; first < out; first += width) {
    const int64_t columns = std::min(width, out - first);
    const float* from = weights.values + first * weights.out_stride;
    for (int64_t k = 0; k < in; ++k, from += weights.in_stride) {
      for (int64_t o = 0; o < columns; ++o) {
        packed[o] = from[o * weights.out_stride];
      }
      std::fill(packed + columns, packed + width, 0.0f);
      packed += width;
    }
  }
}

template <>
void PackWeights(const WeightMatrix& weights, int64_t in, int64_t out,
                 BFloat16* packed, CpuIsa) {
  for (int64_t first = 0; first < out; first += kPanelBf16) {
    const int64_t columns = std::min(kPanelBf16, out - first);
    const float* from = weights.values + first * weights.out_stride;
    for (int64_t k = 0; k < in; k += 2, from += 2 * weights.in_stride) {
      std::fill_n(packed, 2 * kPanelBf16, BFloat16());
      const int64_t second = k + 1 < in ? weights.in_stride : -1;
      for (int64_t o = 0; o < columns; ++o) {
        const float* pair = from + o * weights.out_stride;
        packed[2 * o] = BFloat16(pair[0]);
        if (second >= 0) packed[2 * o + 1] = BFloat16(pair[second]);
      }
      packed += 2 * kPanelBf16;
    }
  }
}

template <>
void PackWeights(const WeightMatrix& weights, int64_t in, int64_t out,
                 SplitFloat* packed, CpuIsa) {
  const int64_t size = PackedInputs<SplitFloat>(in) * kPanelSplit;
  for (int64_t first = 0; first < out; first += kPanelSplit, packed += size) {
    const int64_t columns = std::min(kPanelSplit, out - first);
    std::fill_n(packed, size, SplitFloat());
    for (int64_t o = 0; o < columns; ++o) {
      const float* from = weights.values + (first + o) * weights.out_stride;
      for (int64_t k = 0; k < in; ++k) {
        packed[k * kPanelSplit + o].value = from[k * weights.in_stride];
      }
    }
  }
}

void PackWeightsScalar(const Bf16WeightMatrix& weights, int64_t in, int64_t out,
                       BFloat16* packed) {
  for (int64_t first = 0; first < out; first += kPanelBf16) {
    const int64_t columns = std::min(kPanelBf16, out - first);
    const BFloat16* from = weights.values + first * weights.out_stride;
    for (int64_t k = 0; k < in; k += 2, from += 2 * weights.in_stride) {
      std::fill_n(packed, 2 * kPanelBf16, BFloat16());
      for (int64_t o = 0; o < columns; ++o) {
        const BFloat16* pair = from + o * weights.out_stride;
        packed[2 * o] = pair[0];
        if (k + 1 < in) packed[2 * o + 1] = pair[weights.in_stride];
      }
      packed += 2 * kPanelBf16;
    }
  }
}

void PackWeights(const Bf16WeightMatrix& weights, int64_t in, int64_t out,
                 BFloat16* packed, CpuIsa isa) {
  const bool pairs = weights.out_stride == 1 || weights.in_stride == 1;
  if (pairs && isa == CpuIsa::kAvx512) {
    return PackWeightsAvx512(weights, in, out, packed);
  }
  PackWeightsScalar(weights, in, out, packed);
}

void RoundToBf16(const float* x, int64_t count, BFloat16* y, CpuIsa isa) {
  static const bool supported = HasAvx512Bf16();
  if (supported && isa == CpuIsa::kAvx512)
    return RoundToBf16Avx512(x, count, y);
  for (int64_t i = 0; i < count; ++i) y[i] = BFloat16(x[i]);
}

template <typename W>
GemmArgs<W> SliceOutputs(GemmArgs<W> args, int64_t begin, int64_t end) {
  args.out = end - begin;
  args.weights += begin * PackedInputs<W>(args.in);
  if (args.bias != nullptr) args.bias += begin;
  if (args.y != nullptr) args.y += begin;
  if (args.y_bf16 != nullptr) args.y_bf16 += begin;
  return args;
}
template PackedGemmArgs SliceOutputs(PackedGemmArgs, int64_t, int64_t);
template Bf16GemmArgs SliceOutputs(Bf16GemmArgs, int64_t, int64_t);
template SplitGemmArgs SliceOutputs(SplitGemmArgs, int64_t, int64_t);

void PackedGemmScalar(const PackedGemmArgs& args) {
  for (int64_t first = 0; first < args.out; first += kPanel) {
    const float* panel = args.weights + first * args.in;
    const int64_t columns = std::min(kPanel, args.out - first);
    for (int64_t i = 0; i < args.rows; ++i) {
      float sums[kPanel] = {};
      for (int64_t k = 0; k < args.in; ++k) {
        const float x = args.x[i * args.x_stride + k];
        for (int64_t c = 0; c < kPanel; ++c)
          sums[c] += x * panel[k * kPanel + c];
      }
      Finish(args, i, first, columns, sums);
    }
  }
}

// Products of bf16 values are exact in fp32, so only the sums are rounded.
void Bf16GemmScalar(const Bf16GemmArgs& args) {
  std::vector<float> x(PackedInputs<BFloat16>(args.in));
  for (int64_t i = 0; i < args.rows; ++i) {
    for (int64_t k = 0; k < args.in; ++k) {
      const int64_t at = i * args.x_stride + k;
      x[k] = static_cast<float>(args.x_bf16 != nullptr ? args.x_bf16[at]
                                                       : BFloat16(args.x[at]));
    }
    const BFloat16* weights = args.weights;
    for (int64_t first = 0; first < args.out; first += kPanelBf16) {
      float sums[kPanelBf16] = {};
      for (size_t pair = 0; pair < x.size(); pair += 2) {
        for (int64_t c = 0; c < kPanelBf16; ++c, weights += 2) {
          sums[c] += x[pair + 1] * static_cast<float>(weights[1]);
          sums[c] += x[pair] * static_cast<float>(weights[0]);
        }
      }
      Finish(args, i, first, std::min(kPanelBf16, args.out - first), sums);
    }
  }
}

void SplitGemmScalar(const SplitGemmArgs& args) {
  for (int64_t i = 0; i < args.rows; ++i) {
    const float* x = args.x + i * args.x_stride;
    const bool finite = IsFinite(x, args.in);
    for (int64_t first = 0; first < args.out; first += kPanelSplit) {
      const SplitFloat* weights =
          args.weights + first * PackedInputs<SplitFloat>(args.in);
      float sums[kPanelSplit] = {};
      for (int64_t k = 0; k < args.in; ++k) {
        for (int64_t c = 0; c < kPanelSplit; ++c, ++weights) {
          sums[c] += finite ? SplitProduct(x[k], weights->value)
                            : x[k] * weights->value;
        }
      }
      Finish(args, i, first, std::min(kPanelSplit, args.out - first), sums);
    }
  }
}

void PackedGemmCpu(const PackedGemmArgs& args, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      PackedGemmScalar(args);
      break;
    case CpuIsa::kAvx2:
      PackedGemmAvx2(args);
      break;
    case CpuIsa::kAvx512:
      PackedGemmAvx512(args);
      break;
  }
  if (args.gelu) ApplyGelu(args, isa);
}

void PackedGemmCpu(const Bf16GemmArgs& args, CpuIsa isa) {
  static const bool amx = HasAmxBf16(), avx512 = HasAvx512Bf16();
  if (amx && isa == CpuIsa::kAvx512) {
    Bf16GemmAmx(args);
  } else if (avx512 && isa == CpuIsa::kAvx512) {
    Bf16GemmAvx512(args);
  } else {
    Bf16GemmScalar(args);
  }
  // If y is bf16, the functions above have applied GELU before they rounded y.
  if (args.gelu && args.y_bf16 == nullptr) ApplyGelu(args, isa);
}

void PackedGemmCpu(const SplitGemmArgs& args, CpuIsa isa) {
  static const bool amx = HasAmxBf16();
  if (!amx || isa != CpuIsa::kAvx512) {
    SplitGemmScalar(args);
    if (args.gelu) ApplyGelu(args, isa);
    return;
  }
  const auto finite = [&](int64_t row) {
    return IsFiniteAvx512(args.x + row * args.x_stride, args.in);
  };
  // Divides the rows into runs. All rows of a run are finite, or none is.
  for (int64_t begin = 0, end; begin < args.rows; begin = end) {
    const bool is_finite = finite(begin);
    for (end = begin + 1; end < args.rows && finite(end) == is_finite;) ++end;
    const SplitGemmArgs run = SliceRows(args, begin, end);
    is_finite ? SplitGemmAmx(run) : MultiplyAsFloats(run);
  }
}

bool SplitGemmIsFaster(int64_t in, int64_t out) {
  return HasAmxBf16() && in >= kFewestSplit && out >= kFewestSplit;
}

}  // namespace sfmamba::kernels
