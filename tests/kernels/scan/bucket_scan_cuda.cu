#include <cstdint>

#include "kernels/scan/scan_math.h"
#include "simt/simt.h"
#include "tests/kernels/scan/bucket_scan_cuda.h"

namespace sfmamba::kernels {
namespace {

constexpr int kWarp = 32;
constexpr int kMostStates = 16;
constexpr unsigned kAll = 0xffffffffu;

// The effect of a run of consecutive tokens on the state. `starts` is not 0 if
// a sequence starts within the run.
struct Run {
  ScanSpan span;
  int starts;
};

__device__ __forceinline__ Run Join(const Run& before, const Run& after) {
  return {Combine(before.span, after.span, after.starts != 0),
          before.starts | after.starts};
}

__device__ __forceinline__ Run ShuffledUp(const Run& run, int distance) {
  return {{__shfl_up_sync(kAll, run.span.decay, distance),
           __shfl_up_sync(kAll, run.span.state, distance)},
          __shfl_up_sync(kAll, run.starts, distance)};
}

template <typename T, int kThreads, int kItems>
class BucketScan {
 public:
  static constexpr int kSpan = kThreads * kItems;
  static constexpr int kWarps = kThreads / kWarp;
  // Holds each thread's items and one more value, so that threads use different
  // banks.
  using Tile = simt::Shared<float, kThreads*(kItems + 1)>;
  using Totals = simt::Shared<float, 3 * kWarps>;  // One Run per warp.
  using Carries = simt::Shared<float, kMostStates>;

  __device__ __forceinline__ BucketScan(const BucketScanArgs<T>& args,
                                        Tile& tile, Totals& totals,
                                        Carries& carries)
      : args_(args), tile_(tile), totals_(totals), carries_(carries) {}

  __device__ __forceinline__ void Scan(int row, int d) {
    const int tokens = args_.sequences * args_.length;
    const int64_t channel = (int64_t{row} * args_.channels + d) * tokens;
    const int64_t state = int64_t{row} * args_.states * tokens;
    const float bias = args_.bias[d] * kLog2E;
    if (threadIdx.x < kMostStates) carries_[threadIdx.x] = 0;
    for (int first = 0; first < tokens; first += kSpan) {
      const int count = min(kSpan, tokens - first);
      float s[kItems], g[kItems], y[kItems];
      Load(args_.u + channel + first, count, y);
      Load(args_.dt + channel + first, count, s);
      unsigned starts = 0;
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        const int token = first + static_cast<int>(threadIdx.x) * kItems + j;
        if (token % args_.length == 0) starts |= 1u << j;
        s[j] = Softplus2(fmaf(s[j], kLog2E, bias));
        g[j] = s[j] * (kLn2 * y[j]);
        y[j] = args_.D[d] * y[j];
      }
      for (int n = 0; n < args_.states; ++n) {
        const int64_t at = state + int64_t{n} * tokens + first;
        float b[kItems], c[kItems];
        Load(args_.B + at, count, b);
        Load(args_.C + at, count, c);
        AddState(args_.A[n * args_.channels + d], n, starts, s, g, b, c, y);
      }
      Store(y, args_.y + channel + first, count);
    }
  }

 private:
  static __device__ __forceinline__ int Place(int t) {
    return t / kItems * (kItems + 1) + t % kItems;
  }

  // Loads `count` tokens of a row with coalesced accesses, and gives each
  // thread consecutive tokens as its items.
  __device__ __forceinline__ void Load(const T* from, int count,
                                       float (&items)[kItems]) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      const int t = threadIdx.x + j * kThreads;
      tile_[Place(t)] = t < count ? simt::ToFloat(from[t]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      items[j] = tile_[threadIdx.x * (kItems + 1) + j];
    }
  }

  __device__ __forceinline__ void Store(const float (&items)[kItems], T* to,
                                        int count) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      tile_[threadIdx.x * (kItems + 1) + j] = items[j];
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      const int t = threadIdx.x + j * kThreads;
      if (t < count) to[t] = simt::FromFloat<T>(tile_[Place(t)]);
    }
  }

  // Adds the contribution of state n to y.
  __device__ __forceinline__ void AddState(float A, int n, unsigned starts,
                                           const float (&s)[kItems],
                                           const float (&g)[kItems],
                                           const float (&b)[kItems],
                                           const float (&c)[kItems],
                                           float (&y)[kItems]) {
    float decay[kItems];
    Run run{{1, 0}, starts != 0};
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      decay[j] = simt::Exp2(A * s[j]);
      run.span =
          Combine(run.span, {decay[j], g[j] * b[j]}, (starts >> j & 1) != 0);
    }
    float h = StateBefore(run, n);
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if ((starts >> j & 1) != 0) h = 0;
      h = fmaf(decay[j], h, g[j] * b[j]);
      y[j] = fmaf(h, c[j], y[j]);
    }
  }

  // Returns state n before the first of the thread's items. `run` is the effect
  // of the thread's items. Also writes state n after the last item of the block
  // to carries_, because the next span begins with it.
  __device__ __forceinline__ float StateBefore(Run run, int n) {
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
#pragma unroll
    for (int distance = 1; distance < kWarp; distance *= 2) {
      const Run before = ShuffledUp(run, distance);
      if (lane >= distance) run = Join(before, run);
    }
    __syncthreads();
    Run prefix{{1, carries_[n]}, 0};
    if (lane == kWarp - 1) {
      totals_[3 * warp] = run.span.decay;
      totals_[3 * warp + 1] = run.span.state;
      totals_[3 * warp + 2] = static_cast<float>(run.starts);
    }
    __syncthreads();
    Run all = prefix;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const Run total{{totals_[3 * w], totals_[3 * w + 1]},
                      totals_[3 * w + 2] != 0.0f};
      if (w == warp) prefix = all;
      all = Join(all, total);
    }
    if (threadIdx.x == 0) carries_[n] = all.span.state;
    const Run before = ShuffledUp(run, 1);
    return lane == 0 ? prefix.span.state : Join(prefix, before).span.state;
  }

  const BucketScanArgs<T>& args_;
  Tile& tile_;
  Totals& totals_;
  Carries& carries_;  // The states at the end of the last span.
};

// Each block scans one channel of one row. blockIdx.x is the row, and
// blockIdx.y is the channel.
template <typename T, int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads)
    BucketKernel(const BucketScanArgs<T> args) {
  using Scan = BucketScan<T, kThreads, kItems>;
  __shared__ typename Scan::Tile tile;
  __shared__ typename Scan::Totals totals;
  __shared__ typename Scan::Carries carries;
  Scan(args, tile, totals, carries).Scan(blockIdx.x, blockIdx.y);
}

template <int kThreads, int kItems, typename T>
absl::Status LaunchBucket(const BucketScanArgs<T>& args, CudaStream stream) {
  return simt::Launch("bucket_scan", BucketKernel<T, kThreads, kItems>,
                      dim3(args.rows, args.channels), dim3(kThreads), stream,
                      args);
}

}  // namespace

ScanBucket BucketOf(int tokens) {
  if (tokens <= 128) return {32, 4};
  if (tokens <= 256) return {32, 8};
  if (tokens <= 512) return {32, 16};
  if (tokens <= 1024) return {64, 16};
  return {128, 16};
}

template <typename T>
absl::Status BucketScanCuda(const BucketScanArgs<T>& args, CudaStream stream) {
  const ScanBucket bucket = BucketOf(args.sequences * args.length);
  if (bucket.threads == 128) return LaunchBucket<128, 16>(args, stream);
  if (bucket.threads == 64) return LaunchBucket<64, 16>(args, stream);
  switch (bucket.items) {
    case 4:
      return LaunchBucket<32, 4>(args, stream);
    case 8:
      return LaunchBucket<32, 8>(args, stream);
    default:
      return LaunchBucket<32, 16>(args, stream);
  }
}

template absl::Status BucketScanCuda(const BucketScanArgs<float>&, CudaStream);
template absl::Status BucketScanCuda(const BucketScanArgs<BFloat16>&,
                                     CudaStream);
template absl::Status BucketScanCuda(const BucketScanArgs<Float16>&,
                                     CudaStream);

}  // namespace sfmamba::kernels
