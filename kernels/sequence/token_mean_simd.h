// Computes the mean over tokens by vectors of type V, one channel per lane.
// token_mean_isa.cc includes this header and is compiled once for each
// instruction set, with a different V. Tokens are summed in the same order as
// in the scalar loop.
#ifndef SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_SIMD_H_
#define SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_SIMD_H_

#include "kernels/sequence/token_mean.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

template <typename V, typename T>
void Mean(const TokenMeanArgs<T>& args) {
  for (int k = 0; k < args.sequences.count; ++k) {
    const int64_t begin = args.sequences.begin(k) + args.margin;
    const int64_t end = args.sequences.end(k) - args.margin;
    const V count = V::Set(static_cast<float>(end - begin));
    ForEachVector<V>(args.channels, [&](int64_t c, int lanes) {
      V total = V::Set(0.0f);
      for (int64_t i = begin; i < end;) {
        const int64_t block_end =
            end - i < kTokenMeanBlock ? end : i + kTokenMeanBlock;
        V sum = V::Set(0.0f);
        for (; i < block_end; ++i) {
          sum = sum + LoadLanes<V>(args.x + i * args.x_stride + c, lanes);
        }
        total = total + sum;
      }
      const int64_t row = k * args.mean_stride + c;
      StoreLanes(total / count, args.mean + row, lanes);
      if (args.copy != nullptr)
        StoreLanes(total / count, args.copy + row, lanes);
    });
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_SIMD_H_
