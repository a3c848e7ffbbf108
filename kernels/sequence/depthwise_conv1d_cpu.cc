#include <cmath>

#include "kernels/sequence/depthwise_conv1d.h"

namespace sfmamba::kernels {

template <typename T>
void DepthwiseConv1dScalar(const DepthwiseConv1dArgs<T>& args) {
  for (int k = 0; k < args.sequences.count; ++k) {
    const int64_t begin = args.sequences.begin(k), end = args.sequences.end(k);
    for (int64_t i = begin; i < end; ++i) {
      for (int c = 0; c < args.channels; ++c) {
        float v = args.bias != nullptr ? args.bias[c] : 0.0f;
        for (int j = 0; j < args.taps; ++j) {
          const int64_t source = i + j - args.left;
          if (source < begin || source >= end) continue;
          v += args.weight[int64_t{j} * args.channels + c] *
               static_cast<float>(args.x[source * args.x_stride + c]);
        }
        if (args.silu) v /= 1.0f + std::exp(-v);
        args.y[i * args.y_stride + c] = static_cast<T>(v);
      }
    }
  }
}

template <typename T>
void DepthwiseConv1dCpu(const DepthwiseConv1dArgs<T>& args, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return DepthwiseConv1dScalar(args);
    case CpuIsa::kAvx2:
      return DepthwiseConv1dAvx2(args);
    case CpuIsa::kAvx512:
      return DepthwiseConv1dAvx512(args);
  }
}

template void DepthwiseConv1dCpu(const DepthwiseConv1dArgs<float>&, CpuIsa);
template void DepthwiseConv1dCpu(const DepthwiseConv1dArgs<BFloat16>&, CpuIsa);

}  // namespace sfmamba::kernels
