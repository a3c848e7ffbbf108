#ifndef SFMAMBA_KERNELS_SCAN_SCAN_LANES_H_
#define SFMAMBA_KERNELS_SCAN_SCAN_LANES_H_

#include <cstdint>

#include "kernels/base/packed_sequences.h"
#include "kernels/scan/scan_math.h"
#include "kernels/scan/selective_scan.h"
#include "simt/simt.h"

// Device code of the lane scan and the chunk scan. A block visits consecutive
// tokens in order and keeps the states in the registers of its threads. kLanes
// neighbouring threads ("lanes") share a channel, and each holds kStates /
// kLanes states. If kLanes is 1, a thread has kChannels channels.
//
// All lanes of a channel need s and delta * u of every token. Each lane
// computes both values for one of kLanes tokens and passes them to the other
// lanes. Each lane also computes its states' part of every output y. The parts
// are summed so that each lane ends up with the whole y of one of kLanes
// tokens.
namespace sfmamba::kernels {

// The number of tokens in a tile of B and C. Shared memory has room for two
// tiles, so that one is filled while the other is read.
constexpr int kScanTile = 32;

// The minimum and the maximum number of threads in a block. Threads without a
// channel only help to load B and C.
constexpr int kLeastScanThreads = 128;
constexpr int kMostScanThreads = 256;

// A run of consecutive tokens, and the sequences that contain them.
struct TokenRun {
  PackedSequences sequences;
  int64_t first;  // The run's first token in the tensor.
  int tokens;
  // The sequence of the current token, and the run's last sequence.
  int sequence, last;
  int stop;  // The end of `sequence`, relative to `first`.

  // Returns true if token `first` + i is the first token of a sequence other
  // than the run's first one. Must be called with increasing i.
  __device__ __forceinline__ bool Starts(int i) {
    if (i < stop || sequence >= last) return false;
    do {  // Skips empty sequences.
      ++sequence;
      stop = static_cast<int>(sequences.end(sequence) - first);
    } while (i >= stop && sequence < last);
    return true;
  }
};

// Returns the run of all tokens of the sequences [begin, end), which must not
// be an empty range.
__device__ __forceinline__ TokenRun RunOf(const PackedSequences& sequences,
                                          int begin, int end) {
  TokenRun run{sequences, sequences.begin(begin)};
  run.tokens = static_cast<int>(sequences.end(end - 1) - run.first);
  run.sequence = begin;
  run.last = end - 1;
  run.stop = static_cast<int>(sequences.end(begin) - run.first);
  return run;
}

// Sums each element of `values` over kLanes neighbouring threads. Returns the
// sum of values[lane], where `lane` is the thread's number among them. All sums
// add in the same order.
template <int kLanes>
__device__ __forceinline__ float SumScattered(float (&values)[kLanes],
                                              int lane) {
#pragma unroll
  for (int width = kLanes / 2; width > 0; width /= 2) {
    const bool upper = (lane & width) != 0;
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const float keep = upper ? values[j + width] : values[j];
      const float give = upper ? values[j] : values[j + width];
      values[j] = keep + __shfl_xor_sync(0xffffffffu, give, width, kLanes);
    }
  }
  return values[0];
}

// Returns the `value` of lane number `from`.
template <int kLanes>
__device__ __forceinline__ float FromLane(float value, int from) {
  if constexpr (kLanes == 1) return value;
  return __shfl_sync(0xffffffffu, value, from, kLanes);
}

// Scans kChannels channels by kLanes threads. If kOutput is true, writes y. If
// kOutput is false, only computes the last states and the sum of s (see
// scan_math.h).
template <typename T, int kStates, int kLanes, int kChannels, bool kOutput>
class LaneScan {
 public:
  static_assert(kLanes == 1 || kChannels == 1);

  static constexpr int kOwn = kStates / kLanes;  // States per thread.

  // Holds B and C of two tiles. The values of a token are grouped by the lane
  // that reads them.
  using Tiles = simt::Shared<float, 2 * kScanTile * 2 * kStates>;

  // Prepares the thread for kChannels channels, which begin with channel `d`.
  // If `d` is not a channel, the thread writes no output.
  __device__ __forceinline__ LaneScan(const SelectiveScanArgs<T>& args, int d)
      : args_(args),
        active_(d < args.channels),
        d_(active_ ? d : args.channels - kChannels),
        lane_(threadIdx.x % kLanes) {
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      bias_[c] = args.bias[d_ + c] * kLog2E;
      D_[c] = args.D[d_ + c];
#pragma unroll
      for (int n = 0; n < kOwn; ++n) {
        A_[c][n] = args.A[(lane_ * kOwn + n) * args.a_stride + d_ + c];
      }
    }
  }

  // Scans the tokens of `run`, which must be the same in all threads of the
  // block. If `working` is false, the thread only helps to fill the tiles.
  // `working` must be the same in all threads of a warp.
  __device__ __forceinline__ void Walk(TokenRun run, bool working,
                                       Tiles& tiles) {
    SetPointers(run);
#pragma unroll
    for (int a = 0; a < kAhead; ++a) Fetch(a * kUnit, run.tokens, queue_[a]);
    Staged staged = FetchTile(0, run.tokens);
    StoreTile(staged, tiles, 0);
    __syncthreads();
    for (int tile = 0; tile < run.tokens; tile += kScanTile) {
      const int buffer = tile / kScanTile % 2;
      staged = FetchTile(tile + kScanTile, run.tokens);
      if (working) {
        const int end = min(tile + kScanTile, run.tokens);
#pragma unroll 1
        for (int i = tile; i < end; i += kUnit) {
          Advance(run, i, tiles, kTileSize * buffer + (i - tile) * 2 * kStates);
        }
      }
      StoreTile(staged, tiles, 1 - buffer);
      __syncthreads();
    }
  }

  float h[kChannels][kOwn] = {};
  float s_sum = 0;  // The sum of s over the lane's tokens.

  __device__ __forceinline__ bool active() const { return active_; }
  __device__ __forceinline__ int d() const { return d_; }
  __device__ __forceinline__ int lane() const { return lane_; }

 private:
  // The number of tokens in a unit. A unit's tokens are loaded and prepared
  // together so that their special functions (exp2, log2) overlap.
  static constexpr int kUnit = kLanes == 1 && kChannels * kStates > 8 ? 4 : 8;
  static constexpr int kLoads = kUnit / kLanes;  // A lane's tokens per unit.
  // Values are loaded this number of units before they are used. This hides the
  // latency of memory, which is about 900 cycles.
  static constexpr int kAhead = kLanes >= 4 ? 4 : kLanes * 8 / kUnit;
  static constexpr int kTileSize = kScanTile * 2 * kStates;
  // The number of values of a tile that each thread loads in a block of
  // kLeastScanThreads threads.
  static constexpr int kStaged = kTileSize / kLeastScanThreads;

  using Values = simt::Vector<T, kChannels>;
  struct Unit {
    Values u[kLoads], dt[kLoads];
  };
  struct Staged {
    T values[kStaged];
  };

  // Returns p + rows * stride. Both factors are 32-bit values and the product
  // has 64 bits, so a single instruction can multiply them and add the product
  // to the address.
  template <typename U>
  static __device__ __forceinline__ U* After(U* p, int rows, int stride) {
    return p + int64_t{rows} * stride;
  }

  __device__ __forceinline__ void SetPointers(const TokenRun& run) {
    const int64_t first = run.first + lane_;
    u_ = args_.u + first * args_.u_stride + d_;
    dt_ = args_.dt + first * args_.dt_stride + d_;
    y_ = args_.y + first * args_.y_stride + d_;
    // A thread loads B or C of one state, for tokens at a fixed distance from
    // each other.
    const int n = threadIdx.x % kStates;
    const int of_c = threadIdx.x / kStates % 2;
    const int64_t token = run.first + threadIdx.x / (2 * kStates);
    bc_ = (of_c ? args_.C : args_.B) + token * args_.bc_stride + n;
    bc_place_ = (n / kOwn * 2 + of_c) * kOwn + n % kOwn;
  }

  // Loads the unit that begins at token i. Units must be loaded in order.
  __device__ __forceinline__ void Fetch(int i, int tokens, Unit& unit) {
    const int u_stride = static_cast<int>(args_.u_stride);
    const int dt_stride = static_cast<int>(args_.dt_stride);
    if (i + kUnit <= tokens) {
#pragma unroll
      for (int q = 0; q < kLoads; ++q) {
        unit.u[q] = simt::Load<kChannels>(After(u_, q * kLanes, u_stride));
        unit.dt[q] = simt::Load<kChannels>(After(dt_, q * kLanes, dt_stride));
      }
    } else {
#pragma unroll
      for (int q = 0; q < kLoads; ++q) {
        if (i + q * kLanes + lane_ < tokens) {
          unit.u[q] = simt::Load<kChannels>(After(u_, q * kLanes, u_stride));
          unit.dt[q] = simt::Load<kChannels>(After(dt_, q * kLanes, dt_stride));
        } else {
          unit.u[q] = unit.dt[q] = Values{};
        }
      }
    }
    u_ = After(u_, kUnit, u_stride);
    dt_ = After(dt_, kUnit, dt_stride);
  }

  // Loads the thread's values of the tile that begins at token `begin`. Tiles
  // must be loaded in order. Values beyond the end of the run are 0.
  __device__ __forceinline__ Staged FetchTile(int begin, int tokens) {
    Staged staged;
    const int stride = static_cast<int>(args_.bc_stride);
    const int step = blockDim.x / (2 * kStates);
    int t = threadIdx.x / (2 * kStates);
#pragma unroll
    for (int q = 0; q < kStaged; ++q, t += step) {
      const bool valid = t < kScanTile && begin + t < tokens;
      staged.values[q] = valid ? *After(bc_, q * step, stride) : T{};
    }
    bc_ = After(bc_, kScanTile, stride);
    return staged;
  }

  __device__ __forceinline__ void StoreTile(const Staged& staged, Tiles& tiles,
                                            int buffer) {
    const int step = blockDim.x / (2 * kStates);
    int t = threadIdx.x / (2 * kStates);
#pragma unroll
    for (int q = 0; q < kStaged; ++q, t += step) {
      if (t < kScanTile) {
        tiles[buffer * kTileSize + t * 2 * kStates + bc_place_] =
            simt::ToFloat(staged.values[q]);
      }
    }
  }

  // Scans the unit that begins at token i. The unit's B and C begin at
  // tiles[tile].
  __device__ __forceinline__ void Advance(TokenRun& run, int i, Tiles& tiles,
                                          int tile) {
    Unit unit = queue_[0];
#pragma unroll
    for (int a = 1; a < kAhead; ++a) queue_[a - 1] = queue_[a];
    Fetch(i + kAhead * kUnit, run.tokens, queue_[kAhead - 1]);
    float u[kLoads][kChannels], s[kLoads][kChannels], g[kLoads][kChannels];
#pragma unroll
    for (int q = 0; q < kLoads; ++q) {
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        u[q][c] = simt::ToFloat(unit.u[q][c]);
        s[q][c] =
            Softplus2(fmaf(simt::ToFloat(unit.dt[q][c]), kLog2E, bias_[c]));
        g[q][c] = s[q][c] * (kLn2 * u[q][c]);
        if constexpr (!kOutput) s_sum += s[q][c];
      }
    }
    if (run.Starts(i)) Reset();
    if (i + kUnit <= run.stop) {
      Recur</*kWhole=*/true>(run, i, tiles, tile, u, s, g);
    } else {
      Recur</*kWhole=*/false>(run, i, tiles, tile, u, s, g);
    }
    y_ = After(y_, kUnit, static_cast<int>(args_.y_stride));
  }

  __device__ __forceinline__ void Reset() {
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
#pragma unroll
      for (int n = 0; n < kOwn; ++n) h[c][n] = 0;
    }
  }

  // Runs the recurrence over the unit that begins at token i. kWhole may be
  // true only if all tokens of the unit exist and belong to the current
  // sequence.
  template <bool kWhole>
  __device__ __forceinline__ void Recur(TokenRun& run, int i, Tiles& tiles,
                                        int tile,
                                        const float (&u)[kLoads][kChannels],
                                        const float (&s)[kLoads][kChannels],
                                        const float (&g)[kLoads][kChannels]) {
    const int y_stride = static_cast<int>(args_.y_stride);
#pragma unroll
    for (int q = 0; q < kLoads; ++q) {
      if (!kWhole && i + q * kLanes >= run.tokens) break;
      float sums[kChannels][kLanes];
#pragma unroll
      for (int j = 0; j < kLanes; ++j) {
        const int token = q * kLanes + j;
        if (!kWhole && run.Starts(i + token)) Reset();
        float bc[2 * kOwn];
        LoadBC(tiles, tile + token * 2 * kStates + lane_ * 2 * kOwn, bc);
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
          const float s_j = FromLane<kLanes>(s[q][c], j);
          const float g_j = FromLane<kLanes>(g[q][c], j);
          float sum = 0;
#pragma unroll
          for (int n = 0; n < kOwn; ++n) {
            h[c][n] = ScanStep(h[c][n], A_[c][n], s_j, g_j, bc[n]);
            const float C = bc[kOwn + n];
            sum = n == 0 ? h[c][n] * C : fmaf(h[c][n], C, sum);
          }
          sums[c][j] = sum;
        }
      }
      if constexpr (kOutput) {
        Values y;
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
          const float sum = SumScattered<kLanes>(sums[c], lane_);
          y[c] = simt::FromFloat<T>(fmaf(D_[c], u[q][c], sum));
        }
        if (active_ && (kWhole || i + q * kLanes + lane_ < run.tokens)) {
          simt::Store<kChannels>(After(y_, q * kLanes, y_stride), y);
        }
      }
    }
  }

  __device__ __forceinline__ void LoadBC(Tiles& tiles, int at,
                                         float (&bc)[2 * kOwn]) {
    constexpr int kVector = kOwn == 1 ? 2 : 4;
#pragma unroll
    for (int n = 0; n < 2 * kOwn; n += kVector) {
      const auto vector = tiles.template Load<kVector>(at + n);
#pragma unroll
      for (int m = 0; m < kVector; ++m) bc[n + m] = vector[m];
    }
  }

  const SelectiveScanArgs<T>& args_;
  const bool active_;
  const int d_, lane_;
  float A_[kChannels][kOwn], D_[kChannels], bias_[kChannels];
  // These point at the lane's first token in the next unit to load.
  const T* u_;
  const T* dt_;
  T* y_;          // The lane's first token in the unit being computed.
  const T* bc_;   // The thread's first value of the next tile.
  int bc_place_;  // The index of the thread's value among a token's values.
  Unit queue_[kAhead];
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SCAN_LANES_H_
