#include <algorithm>

#include "kernels/linear/packed_gemm.h"

namespace sfmamba::kernels {
namespace {

// Two vectors, but at least a cache line.
constexpr int64_t kPanel = 16, kPanelAvx512 = 32;

}  // namespace

int64_t PanelWidth(CpuIsa isa) {
  return isa == CpuIsa::kAvx512 ? kPanelAvx512 : kPanel;
}

int64_t PackedWeightsSize(int64_t in, int64_t out, CpuIsa isa) {
  const int64_t width = PanelWidth(isa);
  return (out + width - 1) / width * width * in;
}

void PackWeights(const float* weights, int64_t in, int64_t out, float* packed,
                 CpuIsa isa) {
  const int64_t width = PanelWidth(isa);
  for (int64_t first = 0; first < out; first += width) {
    for (int64_t k = 0; k < in; ++k) {
      for (int64_t o = first; o < first + width; ++o) {
        *packed++ = o < out ? weights[o * in + k] : 0.0f;
      }
    }
  }
}

PackedGemmArgs SliceRows(PackedGemmArgs args, int64_t begin, int64_t end) {
  args.rows = end - begin;
  args.x += begin * args.x_stride;
  args.y += begin * args.y_stride;
  return args;
}

PackedGemmArgs SliceOutputs(PackedGemmArgs args, int64_t begin, int64_t end) {
  args.out = end - begin;
  args.weights += begin * args.in;
  if (args.bias != nullptr) args.bias += begin;
  args.y += begin;
  return args;
}

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
      float* y = args.y + i * args.y_stride + first;
      for (int64_t c = 0; c < columns; ++c) {
        if (args.bias != nullptr) sums[c] += args.bias[first + c];
        y[c] = args.add ? y[c] + sums[c] : sums[c];
      }
    }
  }
}

void PackedGemmCpu(const PackedGemmArgs& args, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return PackedGemmScalar(args);
    case CpuIsa::kAvx2:
      return PackedGemmAvx2(args);
    case CpuIsa::kAvx512:
      return PackedGemmAvx512(args);
  }
}

}  // namespace sfmamba::kernels
