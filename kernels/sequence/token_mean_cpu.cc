#include <algorithm>

#include "kernels/sequence/token_mean.h"

namespace sfmamba::kernels {

template <typename T>
void TokenMeanScalar(const TokenMeanArgs<T>& args) {
  for (int k = 0; k < args.sequences.count; ++k) {
    const int64_t begin = args.sequences.begin(k) + args.margin;
    const int64_t end = args.sequences.end(k) - args.margin;
    for (int c = 0; c < args.channels; ++c) {
      float total = 0;
      for (int64_t block = begin; block < end; block += kTokenMeanBlock) {
        float sum = 0;
        for (int64_t i = block; i < std::min(block + kTokenMeanBlock, end);
             ++i) {
          sum += static_cast<float>(args.x[i * args.x_stride + c]);
        }
        total += sum;
      }
      const T mean = static_cast<T>(total / static_cast<float>(end - begin));
      args.mean[k * args.mean_stride + c] = mean;
      if (args.copy != nullptr) args.copy[k * args.mean_stride + c] = mean;
    }
  }
}

template void TokenMeanScalar(const TokenMeanArgs<float>&);
template void TokenMeanScalar(const TokenMeanArgs<BFloat16>&);

template <typename T>
void TokenMeanCpu(const TokenMeanArgs<T>& args, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return TokenMeanScalar(args);
    case CpuIsa::kAvx2:
      return TokenMeanAvx2(args);
    case CpuIsa::kAvx512:
      return TokenMeanAvx512(args);
  }
}

template void TokenMeanCpu(const TokenMeanArgs<float>&, CpuIsa);
template void TokenMeanCpu(const TokenMeanArgs<BFloat16>&, CpuIsa);

}  // namespace sfmamba::kernels
