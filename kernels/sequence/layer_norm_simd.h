// Layer normalisation by vectors of type V. layer_norm_isa.cc includes this
// header and is compiled once for each instruction set, with a different V.
#ifndef SFMAMBA_KERNELS_SEQUENCE_LAYER_NORM_SIMD_H_
#define SFMAMBA_KERNELS_SEQUENCE_LAYER_NORM_SIMD_H_

#include "kernels/sequence/layer_norm.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// Returns the sum of value(c, lanes) over the vectors of a row. Adds in four
// independent chains, whose latencies overlap.
template <typename V, typename F>
inline float SumRow(int channels, F value) {
  V sums[4] = {V::Set(0.0f), V::Set(0.0f), V::Set(0.0f), V::Set(0.0f)};
  int c = 0;
  for (; c + 4 * V::kWidth <= channels; c += 4 * V::kWidth) {
    for (int i = 0; i < 4; ++i) {
      sums[i] = sums[i] + value(c + i * V::kWidth, V::kWidth);
    }
  }
  for (; c < channels; c += V::kWidth) {
    const int lanes = channels - c < V::kWidth ? channels - c : V::kWidth;
    sums[0] = sums[0] + value(c, lanes);
  }
  return Sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// Returns v with all lanes after the first `lanes` set to 0.
template <typename V>
inline V KeepLanes(V v, int lanes) {
  if (lanes == V::kWidth) return v;
  float values[V::kWidth] = {};
  StoreLanes(v, values, lanes);
  return V::Load(values);
}

template <typename V, typename T, typename Y>
void NormalizeRow(const LayerNormArgs<T, Y>& args, const T* x, Y* y) {
  const float sum = SumRow<V>(args.channels, [&](int c, int lanes) {
    return LoadLanes<V>(x + c, lanes);
  });
  const float mean = sum / static_cast<float>(args.channels);
  const V means = V::Set(mean);
  const float squares = SumRow<V>(args.channels, [&](int c, int lanes) {
    const V difference = KeepLanes(LoadLanes<V>(x + c, lanes) - means, lanes);
    return difference * difference;
  });
  const float variance = squares / static_cast<float>(args.channels);
  const V scale = V::Set(1.0f / __builtin_sqrtf(variance + args.eps));
  ForEachVector<V>(args.channels, [&](int64_t c, int lanes) {
    const V normalized = (LoadLanes<V>(x + c, lanes) - means) * scale;
    const V gamma = LoadLanes<V>(args.gamma + c, lanes);
    const V beta = LoadLanes<V>(args.beta + c, lanes);
    StoreLanes(Fma(normalized, gamma, beta), y + c, lanes);
  });
}

template <typename V, typename T, typename Y>
void Normalize(const LayerNormArgs<T, Y>& args) {
  for (int k = 0; k < args.sequences.count; ++k) {
    const int64_t first = args.sequences.begin(k),
                  last = args.sequences.end(k) - 1;
    for (int64_t i = first; i <= last; ++i) {
      const bool end = args.swap && (i == first || i == last);
      const int64_t source = end ? first + last - i : i;
      NormalizeRow<V>(args, args.x + source * args.x_stride,
                      args.y + i * args.y_stride);
    }
    if (!args.swap || first >= last) continue;
    T* head = args.x + first * args.x_stride;
    T* tail = args.x + last * args.x_stride;
    for (int c = 0; c < args.channels; ++c) {
      const T value = head[c];
      head[c] = tail[c];
      tail[c] = value;
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_LAYER_NORM_SIMD_H_
