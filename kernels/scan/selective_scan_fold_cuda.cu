#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/scan/scan_math.h"
#include "kernels/scan/selective_scan_fold_cuda.h"
#include "simt/simt.h"

namespace sfmamba::kernels {
namespace {

constexpr int kWarp = 32;
constexpr int kChannels = 8;  // Channels in a block, one per warp.
constexpr int kThreads = kWarp * kChannels;
constexpr int kGroup = 4;  // States whose B and C are loaded together.
constexpr int kMostStates = 16;
constexpr unsigned kAll = 0xffffffffu;

// The number of blocks per multiprocessor. This is the largest number with
// which the compiler spills no registers.
template <int kItems>
constexpr int kBlocks = kItems > 13 ? 1 : 2;

// Finds which of a thread's tokens start a sequence. The block scans a row in
// spans, each of which is a fixed number of consecutive tokens. Bits() is
// called once for each span, in order. If kRagged is true, reads the offsets of
// the sequences. If kRagged is false, counts tokens, because all sequences have
// the same length.
template <bool kRagged>
class Starts {
 public:
  // The row consists of the sequences [begin, end). In each span of `span`
  // tokens, the thread has `items` consecutive tokens. In the first span, these
  // begin at `token`.
  __device__ __forceinline__ Starts(const PackedSequences& sequences, int begin,
                                    int end, int token, int items, int span)
      : sequences_(sequences), items_(items), end_(end) {
    if constexpr (kRagged) {
      next_ = begin;
      first_ = sequences.begin(begin);
      boundary_ = 0;
    } else {
      next_ = token % sequences.length;
      step_ = (span - items) % sequences.length;
    }
  }

  // Returns a word whose bit j is 1 if token `token` + j starts a sequence.
  // `token` must be the thread's first token in the next span.
  __device__ __forceinline__ unsigned Bits(int token) {
    unsigned bits = 0;
    if constexpr (kRagged) {
      while (boundary_ < token) ToNext();
      for (int j = 0; j < items_; ++j) {
        if (boundary_ != token + j) continue;
        bits |= 1u << j;
        while (boundary_ == token + j) ToNext();  // Skips empty sequences.
      }
    } else {
      for (int j = 0; j < items_; ++j) {
        if (next_ == 0) bits |= 1u << j;
        next_ = next_ + 1 == sequences_.length ? 0 : next_ + 1;
      }
      next_ += step_;
      if (next_ >= sequences_.length) next_ -= sequences_.length;
    }
    return bits;
  }

 private:
  __device__ __forceinline__ void ToNext() {
    ++next_;
    boundary_ = next_ < end_
                    ? static_cast<int>(sequences_.begin(next_) - first_)
                    : std::numeric_limits<int>::max();
  }

  const PackedSequences& sequences_;
  const int items_, end_;
  // If kRagged is true, next_ is the index of the next sequence. If not, next_
  // is the next token's position in its sequence and advances by step_ between
  // spans.
  int next_, step_;
  int64_t first_;
  int boundary_;  // The first token of sequence next_, relative to the row.
};

// A block scans kChannels channels of one row, in spans of kWarp * kItems
// tokens. Each thread has kItems consecutive tokens of a span.
template <typename T, int kItems, bool kRagged>
class FoldScan {
 public:
  static constexpr int kSpan = kWarp * kItems;

  // A plane holds one value for each token of a span. The tokens of
  // neighbouring threads begin an odd number of values apart, and planes are
  // padded by 4 values. This avoids bank conflicts, whether each thread
  // accesses its own tokens or a warp accesses the same tokens in all planes.
  static constexpr int kPitch = kItems | 1;
  static constexpr int kPlane = kWarp * kPitch + 4;
  using Planes = simt::Shared<float, kChannels * kPlane>;
  using Carries = simt::Shared<float, kChannels * kMostStates>;

  __device__ __forceinline__ FoldScan(const SelectiveScanArgs<T>& args,
                                      int first_channel, Planes& values,
                                      Planes& bc, Carries& carries)
      : args_(args),
        first_channel_(first_channel),
        warp_(threadIdx.x / kWarp),
        lane_(threadIdx.x % kWarp),
        d_(min(first_channel + warp_, args.channels - 1)),
        bias_(args.bias[d_] * kLog2E),
        D_(args.D[d_]),
        values_(values),
        bc_(bc),
        carries_(carries) {}

  __device__ __forceinline__ void Scan(int begin, int end) {
    const int64_t first = args_.sequences.begin(begin);
    const int tokens = static_cast<int>(args_.sequences.end(end - 1) - first);
    Starts<kRagged> starts(args_.sequences, begin, end, lane_ * kItems, kItems,
                           kSpan);
    if (threadIdx.x < kChannels * kMostStates) carries_[threadIdx.x] = 0;
    for (int token = 0; token < tokens; token += kSpan) {
      ScanSpanAt(first + token, min(kSpan, tokens - token),
                 starts.Bits(token + lane_ * kItems));
    }
  }

 private:
  // Returns the index of token t in a plane.
  static __device__ __forceinline__ int Place(int t) {
    return t / kItems * kPitch + t % kItems;
  }

  // All threads together load or store a span that has kChannels values per
  // token. TokenOf(q) is the token of the thread's element q. ColumnOf() is the
  // index of this element among the token's values.
  static __device__ __forceinline__ int TokenOf(int q) {
    return (threadIdx.x + q * kThreads) / kChannels;
  }
  static __device__ __forceinline__ int ColumnOf() {
    return threadIdx.x % kChannels;
  }

  // Scans a span of `count` tokens, which begins at token `first` of the
  // tensor. Bit j of `starts` is 1 if the thread's token j starts a sequence.
  __device__ __forceinline__ void ScanSpanAt(int64_t first, int count,
                                             unsigned starts) {
    Prepare(first, count);
    // `source` is the nearest lane, at or before this lane, with a token that
    // starts a sequence, or 0 if there is none. States of lanes before `source`
    // do not reach this lane.
    const unsigned resets = __ballot_sync(kAll, starts != 0);
    const unsigned before = resets & (kAll >> (kWarp - 1 - lane_));
    const int source = before == 0 ? 0 : kWarp - 1 - __clz(before);
    for (int group = 0; group < args_.states; group += kGroup) {
      FetchGroup(first, count, group);
#pragma unroll 1
      for (int n = 0; n < kGroup; ++n) ScanState(group + n, n, starts, source);
    }
    Finish(first, count);
  }

  // Loads u and dt and computes s_, g_ and the initial y_ = D * u.
  __device__ __forceinline__ void Prepare(int64_t first, int count) {
    const int column = ColumnOf();
    const bool active = first_channel_ + column < args_.channels;
    const T* const u = args_.u + first * args_.u_stride + first_channel_;
    const T* const dt = args_.dt + first * args_.dt_stride + first_channel_;
    const int u_stride = static_cast<int>(args_.u_stride);
    const int dt_stride = static_cast<int>(args_.dt_stride);
    T u_values[kItems], dt_values[kItems];
#pragma unroll
    for (int q = 0; q < kItems; ++q) {
      const int t = TokenOf(q);
      const bool valid = active && t < count;
      u_values[q] = valid ? u[int64_t{t} * u_stride + column] : T{};
      dt_values[q] = valid ? dt[int64_t{t} * dt_stride + column] : T{};
    }
    Exchange(u_values, y_);
    Exchange(dt_values, s_);
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      s_[j] = Softplus2(fmaf(s_[j], kLog2E, bias_));
      g_[j] = s_[j] * (kLn2 * y_[j]);
      y_[j] = D_ * y_[j];
    }
  }

  // Redistributes loaded values so that each thread gets its items of the
  // warp's channel.
  __device__ __forceinline__ void Exchange(const T (&loaded)[kItems],
                                           float (&items)[kItems]) {
    __syncthreads();
#pragma unroll
    for (int q = 0; q < kItems; ++q) {
      values_[ColumnOf() * kPlane + Place(TokenOf(q))] =
          simt::ToFloat(loaded[q]);
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      items[j] = values_[warp_ * kPlane + lane_ * kPitch + j];
    }
  }

  // Loads B and C of the states `group` .. `group` + 3.
  __device__ __forceinline__ void FetchGroup(int64_t first, int count,
                                             int group) {
    const int column = ColumnOf();
    const T* const from =
        column < kGroup
            ? args_.B + first * args_.bc_stride + group + column
            : args_.C + first * args_.bc_stride + group + column - kGroup;
    const int stride = static_cast<int>(args_.bc_stride);
    T loaded[kItems];
#pragma unroll
    for (int q = 0; q < kItems; ++q) {
      const int t = TokenOf(q);
      loaded[q] = t < count ? from[int64_t{t} * stride] : T{};
    }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < kItems; ++q) {
      bc_[column * kPlane + Place(TokenOf(q))] = simt::ToFloat(loaded[q]);
    }
    __syncthreads();
  }

  // Adds the contribution of state n to y_. `plane` is the index of the plane
  // with this state's B.
  __device__ __forceinline__ void ScanState(int n, int plane, unsigned starts,
                                            int source) {
    const int B = plane * kPlane + lane_ * kPitch, C = B + kGroup * kPlane;
    const int carry = warp_ * kMostStates + n;
    const float A = args_.A[n * args_.a_stride + d_];
    float decay[kItems];
    ScanSpan span{1, lane_ == 0 ? float{carries_[carry]} : 0.0f};
    const float carried = span.state;
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      decay[j] = simt::Exp2(A * s_[j]);
      const float h = (starts >> j & 1) != 0 ? 0.0f : span.state;
      span.state = fmaf(decay[j], h, g_[j] * bc_[B + j]);
      span.decay *= decay[j];
    }
#pragma unroll
    for (int distance = 1; distance < kWarp; distance *= 2) {
      const ScanSpan earlier{__shfl_up_sync(kAll, span.decay, distance),
                             __shfl_up_sync(kAll, span.state, distance)};
      span = Combine(earlier, span, lane_ - distance < source);
    }
    const float last = __shfl_sync(kAll, span.state, kWarp - 1);
    if (lane_ == 0) carries_[carry] = last;
    float h = __shfl_up_sync(kAll, span.state, 1);
    if (lane_ == 0) h = carried;
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if ((starts >> j & 1) != 0) h = 0;
      h = fmaf(decay[j], h, g_[j] * bc_[B + j]);
      y_[j] = fmaf(h, bc_[C + j], y_[j]);
    }
  }

  // Writes y_ to the output.
  __device__ __forceinline__ void Finish(int64_t first, int count) {
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      values_[warp_ * kPlane + lane_ * kPitch + j] = y_[j];
    }
    __syncthreads();
    const int column = ColumnOf();
    if (first_channel_ + column >= args_.channels) return;
    T* const y = args_.y + first * args_.y_stride + first_channel_ + column;
    const int stride = static_cast<int>(args_.y_stride);
#pragma unroll
    for (int q = 0; q < kItems; ++q) {
      const int t = TokenOf(q);
      if (t < count) {
        y[int64_t{t} * stride] =
            simt::FromFloat<T>(values_[column * kPlane + Place(t)]);
      }
    }
  }

  const SelectiveScanArgs<T>& args_;
  const int first_channel_, warp_, lane_;
  const int d_;  // The warp's channel. The last channel if it has none.
  const float bias_, D_;
  Planes& values_;    // One plane of u, dt or y for each channel.
  Planes& bc_;        // B of each state of a group, then C. One plane each.
  Carries& carries_;  // [channel, state]: the states after the last span.
  float s_[kItems], g_[kItems], y_[kItems];
};

// blockIdx.x is the row, and blockIdx.y selects channels. Row r consists of the
// sequences [count * r / rows, count * (r + 1) / rows).
template <typename T, int kItems, bool kRagged>
__global__ void __launch_bounds__(kThreads, kBlocks<kItems>)
    FoldKernel(const SelectiveScanArgs<T> args) {
  using Scan = FoldScan<T, kItems, kRagged>;
  __shared__ typename Scan::Planes values;
  __shared__ typename Scan::Planes bc;
  __shared__ typename Scan::Carries carries;
  const int64_t count = args.sequences.count;
  Scan scan(args, blockIdx.y * kChannels, values, bc, carries);
  scan.Scan(static_cast<int>(count * blockIdx.x / gridDim.x),
            static_cast<int>(count * (blockIdx.x + 1) / gridDim.x));
}

template <bool kRagged, typename T>
absl::Status LaunchItems(const SelectiveScanArgs<T>& args, int items, int rows,
                         CudaStream stream) {
  const dim3 blocks(rows, (args.channels + kChannels - 1) / kChannels);
  const auto launch = [&](void (*kernel)(SelectiveScanArgs<T>)) {
    return simt::Launch("selective_scan fold", kernel, blocks, dim3(kThreads),
                        stream, args);
  };
  switch (items) {
    case 2:
      return launch(FoldKernel<T, 2, kRagged>);
    case 4:
      return launch(FoldKernel<T, 4, kRagged>);
    case 7:
      return launch(FoldKernel<T, 7, kRagged>);
    case 8:
      return launch(FoldKernel<T, 8, kRagged>);
    case 13:
      return launch(FoldKernel<T, 13, kRagged>);
    default:
      return launch(FoldKernel<T, 16, kRagged>);
  }
}

}  // namespace

template <typename T>
absl::Status SelectiveScanFoldCuda(const SelectiveScanArgs<T>& args,
                                   const ScanPlan& plan, CudaStream stream) {
  const PackedSequences& sequences = args.sequences;
  const int rows =
      plan.rows == 0 ? sequences.count : std::min(plan.rows, sequences.count);
  if (sequences.offsets != nullptr) {
    // The offsets are in device memory, so the host does not know how long a
    // row is. Unless the plan has a number of items, each thread therefore gets
    // 8 tokens, as if the longest row had 256 tokens.
    const int items = plan.items == 0 ? FoldItems(kWarp * 8) : plan.items;
    return LaunchItems</*kRagged=*/true>(args, items, rows, stream);
  }
  const int64_t longest = (sequences.count + rows - 1) / rows;
  const int items =
      plan.items == 0 ? FoldItems(longest * sequences.length) : plan.items;
  return LaunchItems</*kRagged=*/false>(args, items, rows, stream);
}

template absl::Status SelectiveScanFoldCuda(const SelectiveScanArgs<float>&,
                                            const ScanPlan&, CudaStream);
template absl::Status SelectiveScanFoldCuda(const SelectiveScanArgs<BFloat16>&,
                                            const ScanPlan&, CudaStream);
template absl::Status SelectiveScanFoldCuda(const SelectiveScanArgs<Float16>&,
                                            const ScanPlan&, CudaStream);

}  // namespace sfmamba::kernels
