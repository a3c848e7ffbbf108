#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/base/logarithms.h"
#include "kernels/cuda/device_rows.h"
#include "kernels/sequence/depthwise_conv1d_cuda.h"
#include "simt/simt.h"

namespace sfmamba::kernels {
namespace {

constexpr int kThreads = 128;  // The maximum number of threads in a block.
// The number of tokens whose rows a thread loads before it computes. The GPU's
// registers are enough for 4 or 5 warps per scheduler. If each of these warps
// has four loads in flight, enough loads overlap to hide the latency of memory.
constexpr int kChunk = 4;
// A thread computes a run of consecutive tokens. The length of a run is a
// multiple of kChunk. The thread must also load some rows next to the run, so
// longer runs load fewer rows in total. A run has up to kLongestRun tokens. It
// is shorter if fewer than kEnoughThreads threads would have work, because a
// large GPU needs that many threads. If only the device knows the lengths of
// the sequences, a run has kRaggedRun tokens.
constexpr int kLongestRun = 16;
constexpr int64_t kEnoughThreads = 1 << 16;
constexpr int kRaggedRun = 8;

template <typename T>
struct Parts {
  DepthwiseConv1dArgs<T> each[2];
};

// V channels of one token, in registers.
template <int V>
struct Channels {
  float values[V];
};

// The current token's position in its sequence.
struct Place {
  int sequence;
  int position;
  int length;  // The sequence's length.
};

__device__ __forceinline__ Place PlaceOf(const PackedSequences& sequences,
                                         int i) {
  Place place;
  place.sequence = SequenceOf(sequences, i);
  const int begin = static_cast<int>(sequences.begin(place.sequence));
  place.position = i - begin;
  place.length = static_cast<int>(sequences.end(place.sequence)) - begin;
  return place;
}

// Advances to token `next`. `end` is the end of the last sequence.
__device__ __forceinline__ void Advance(const PackedSequences& sequences,
                                        int next, int end, Place* place) {
  if (++place->position < place->length) return;
  place->position = 0;
  if (sequences.offsets == nullptr || next >= end) return;
  do {  // Skips empty sequences.
    ++place->sequence;
    place->length = static_cast<int>(sequences.end(place->sequence)) - next;
  } while (place->length == 0);
}

// Loads V channels of row i, which begin with channel c. The values are 0 if
// token i is not in [begin, end), the range of all sequences.
template <int V, typename T>
__device__ __forceinline__ void LoadRow(const DepthwiseConv1dArgs<T>& args,
                                        int c, int begin, int end, int i,
                                        Channels<V>* row) {
  if (i >= begin && i < end) {
    LoadFloats(args.x + i * args.x_stride + c, row->values);
  } else {
#pragma unroll
    for (int n = 0; n < V; ++n) row->values[n] = 0;
  }
}

// Computes one token. Tap j multiplies rows[j]. Taps outside of the sequence
// are skipped.
template <int kTaps, int kLeft, int V>
__device__ __forceinline__ void Convolve(const Channels<V>* rows,
                                         const Channels<V> (&weight)[kTaps],
                                         const Channels<V>& bias,
                                         const Place& place, bool silu,
                                         float (&v)[V]) {
#pragma unroll
  for (int n = 0; n < V; ++n) v[n] = bias.values[n];
#pragma unroll
  for (int j = 0; j < kTaps; ++j) {
    const int source = place.position + j - kLeft;
    const bool inside =
        j == kLeft || (j < kLeft ? source >= 0 : source < place.length);
#pragma unroll
    for (int n = 0; n < V; ++n) {
      const float sum = fmaf(weight[j].values[n], rows[j].values[n], v[n]);
      v[n] = inside ? sum : v[n];
    }
  }
  if (!silu) return;
#pragma unroll
  for (int n = 0; n < V; ++n) {
    v[n] *= simt::Reciprocal(1.0f + simt::Exp2(v[n] * -kLog2E));
  }
}

// Computes the tokens [from, from + run) for V channels, which begin with
// channel c.
template <int kTaps, int kLeft, int V, typename T>
__device__ __forceinline__ void ConvolveRun(const DepthwiseConv1dArgs<T>& args,
                                            int c,
                                            const Channels<V> (&weight)[kTaps],
                                            const Channels<V>& bias, int begin,
                                            int end, int from, int run) {
  constexpr int kBefore = kTaps - 1;  // Rows shared by neighbouring tokens.
  constexpr int kRight = kTaps - 1 - kLeft;
  Place place = PlaceOf(args.sequences, from);
  // rows[j] is token i + j - kLeft.
  Channels<V> rows[kBefore + kChunk];
#pragma unroll
  for (int j = 0; j < kBefore; ++j) {
    LoadRow(args, c, begin, end, from + j - kLeft, &rows[j]);
  }
  const int last = min(from + run, end);
  for (int i = from; i < last; i += kChunk) {
#pragma unroll
    for (int t = 0; t < kChunk; ++t) {
      LoadRow(args, c, begin, end, i + t + kRight, &rows[kBefore + t]);
    }
#pragma unroll
    for (int t = 0; t < kChunk; ++t) {
      if (i + t < last) {
        float v[V];
        Convolve<kTaps, kLeft>(&rows[t], weight, bias, place, args.silu, v);
        StoreFloats(args.y + (i + t) * args.y_stride + c, v);
        Advance(args.sequences, i + t + 1, end, &place);
      }
    }
#pragma unroll
    for (int j = 0; j < kBefore; ++j) rows[j] = rows[kChunk + j];
  }
}

// Each thread computes V channels of a run of tokens. threadIdx.x and
// blockIdx.y select the channels, and threadIdx.y and blockIdx.x select the
// run. blockIdx.z is the index of the convolution in `parts`.
template <typename T, int kTaps, int kLeft, int V>
__global__ void ConvolveKernel(Parts<T> parts, int run) {
  const DepthwiseConv1dArgs<T>& args = parts.each[blockIdx.z];
  const int c = (blockIdx.y * blockDim.x + threadIdx.x) * V;
  if (c >= args.channels) return;
  Channels<V> weight[kTaps], bias = {};
#pragma unroll
  for (int j = 0; j < kTaps; ++j) {
    LoadFloats(args.weight + j * args.channels + c, weight[j].values);
  }
  if (args.bias != nullptr) LoadFloats(args.bias + c, bias.values);
  const int begin = static_cast<int>(args.sequences.begin(0));
  const int end =
      static_cast<int>(args.sequences.end(args.sequences.count - 1));
  const int step = gridDim.x * blockDim.y * run;
  for (int from = begin + (blockIdx.x * blockDim.y + threadIdx.y) * run;
       from < end; from += step) {
    ConvolveRun<kTaps, kLeft>(args, c, weight, bias, begin, end, from, run);
  }
}

template <typename T, int kTaps, int kLeft, int V>
absl::Status LaunchVectors(const Parts<T>& parts, int count,
                           CudaStream stream) {
  const PackedSequences& sequences = parts.each[0].sequences;
  int channels = 0;
  for (int p = 0; p < count; ++p) {
    channels = std::max(channels, parts.each[p].channels);
  }
  const int groups = channels / V;
  const int columns = (groups + kThreads - 1) / kThreads;
  const dim3 threads((groups + columns - 1) / columns,
                     std::max(1, kThreads * columns / groups));
  int run = kRaggedRun, blocks = kRaggedBlocks;
  if (sequences.offsets == nullptr) {
    const int64_t tokens = int64_t{sequences.count} * sequences.length;
    run = kLongestRun;
    while (run > kChunk && tokens * groups * count < run * kEnoughThreads) {
      run /= 2;
    }
    const int64_t block_tokens = int64_t{threads.y} * run;
    blocks = static_cast<int>((tokens + block_tokens - 1) / block_tokens);
  }
  return simt::Launch("depthwise_conv1d", ConvolveKernel<T, kTaps, kLeft, V>,
                      dim3(blocks, columns, count), threads, stream, parts,
                      run);
}

template <int V, typename T>
bool AllInVectors(const Parts<T>& parts) {
  for (const DepthwiseConv1dArgs<T>& args : parts.each) {
    if (!InVectors<V>(args.x, args.x_stride, args.channels) ||
        !InVectors<V>(args.y, args.y_stride, args.channels) ||
        !InVectors<V>(args.weight, args.channels, args.channels) ||
        !InVectors<V>(args.bias, 0, args.channels)) {
      return false;
    }
  }
  return true;
}

template <typename T, int kTaps, int kLeft>
absl::Status LaunchTaps(const Parts<T>& parts, int count, CudaStream stream) {
  constexpr int kWide = kWidestVector<T>;
  if (AllInVectors<kWide>(parts)) {
    return LaunchVectors<T, kTaps, kLeft, kWide>(parts, count, stream);
  }
  if (AllInVectors<2>(parts)) {
    return LaunchVectors<T, kTaps, kLeft, 2>(parts, count, stream);
  }
  return LaunchVectors<T, kTaps, kLeft, 1>(parts, count, stream);
}

}  // namespace

template <typename T>
absl::Status DepthwiseConv1dCuda(const DepthwiseConv1dArgs<T>* parts, int count,
                                 CudaStream stream) {
  if (count < 1 || count > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("depthwise_conv1d: got ", count, " parts, expected 1, 2"));
  }
  const Parts<T> both = {{parts[0], parts[count - 1]}};
  if (parts[0].sequences.count == 0) return absl::OkStatus();
  const int taps = parts[0].taps, left = parts[0].left;
  if (taps == 3 && left == 1) return LaunchTaps<T, 3, 1>(both, count, stream);
  if (taps == 4 && left == 3) return LaunchTaps<T, 4, 3>(both, count, stream);
  return absl::InvalidArgumentError(
      absl::StrCat("depthwise_conv1d: got ", taps, " taps, ", left,
                   " of them before the token, expected 3 and 1, or 4 and 3"));
}

template absl::Status DepthwiseConv1dCuda(const DepthwiseConv1dArgs<float>*,
                                          int, CudaStream);
template absl::Status DepthwiseConv1dCuda(const DepthwiseConv1dArgs<BFloat16>*,
                                          int, CudaStream);
template absl::Status DepthwiseConv1dCuda(const DepthwiseConv1dArgs<Float16>*,
                                          int, CudaStream);

}  // namespace sfmamba::kernels
