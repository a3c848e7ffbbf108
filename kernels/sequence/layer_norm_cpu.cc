#include <cmath>
#include <utility>

#include "kernels/sequence/layer_norm.h"

namespace sfmamba::kernels {
namespace {

template <typename T, typename Y>
void NormalizeRow(const LayerNormArgs<T, Y>& args, const T* x, Y* y) {
  float sum = 0;
  for (int c = 0; c < args.channels; ++c) sum += static_cast<float>(x[c]);
  const float mean = sum / args.channels;
  float squares = 0;
  for (int c = 0; c < args.channels; ++c) {
    const float difference = static_cast<float>(x[c]) - mean;
    squares += difference * difference;
  }
  const float scale = 1.0f / std::sqrt(squares / args.channels + args.eps);
  for (int c = 0; c < args.channels; ++c) {
    const float normalized = (static_cast<float>(x[c]) - mean) * scale;
    y[c] = static_cast<Y>(normalized * args.gamma[c] + args.beta[c]);
  }
}

}  // namespace

template <typename T, typename Y>
void LayerNormScalar(const LayerNormArgs<T, Y>& args) {
  for (int k = 0; k < args.sequences.count; ++k) {
    const int64_t first = args.sequences.begin(k),
                  last = args.sequences.end(k) - 1;
    for (int64_t i = first; i <= last; ++i) {
      const bool end = args.swap && (i == first || i == last);
      const int64_t source = end ? first + last - i : i;
      NormalizeRow(args, args.x + source * args.x_stride,
                   args.y + i * args.y_stride);
    }
    if (args.swap && first < last) {
      T* head = args.x + first * args.x_stride;
      T* tail = args.x + last * args.x_stride;
      for (int c = 0; c < args.channels; ++c) std::swap(head[c], tail[c]);
    }
  }
}

template <typename T, typename Y>
void LayerNormCpu(const LayerNormArgs<T, Y>& args, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return LayerNormScalar(args);
    case CpuIsa::kAvx2:
      return LayerNormAvx2(args);
    case CpuIsa::kAvx512:
      return LayerNormAvx512(args);
  }
}

template void LayerNormCpu(const LayerNormArgs<float>&, CpuIsa);
template void LayerNormCpu(const LayerNormArgs<BFloat16>&, CpuIsa);
template void LayerNormCpu(const LayerNormArgs<float, BFloat16>&, CpuIsa);

}  // namespace sfmamba::kernels
