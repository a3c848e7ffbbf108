#ifndef SFMAMBA_KERNELS_SCAN_SCAN_LANES_H_
#define SFMAMBA_KERNELS_SCAN_SCAN_LANES_H_

#include <cstdint>

#include "kernels/base/packed_sequences.h"
#include "kernels/scan/scan_math.h"
#include "kernels/scan/selective_scan.h"
#include "simt/simt.h"

// Device code: a block walks over consecutive tokens with the states in its
// threads' registers. kLanes neighbouring threads share a channel, each with
// kStates / kLanes states; with one lane a thread has kChannels channels.
//
// All lanes need s and delta * u of all tokens: each computes them for one
// token of kLanes and hands them round. All lanes have a part of each y: the
// parts of kLanes tokens are added up so that each lane ends with one token.
namespace sfmamba::kernels {

// Tokens whose B and C lie in shared memory at a time, twice.
constexpr int kScanTile = 32;

// Of a block. Threads beyond the channels help to bring B and C.
constexpr int kLeastScanThreads = 128;
constexpr int kMostScanThreads = 256;

// Consecutive tokens, and the sequences [sequence, last] that they belong to.
struct TokenRun {
  PackedSequences sequences;
  int64_t first;  // Token of the tensor; all others are counted from it.
  int tokens;
  int sequence, last;
  int stop;  // Where `sequence` ends.

  // Whether token i, reached from the one before, starts a sequence.
  __device__ __forceinline__ bool Starts(int i) {
    if (i < stop || sequence >= last) return false;
    do {  // More than once if sequences are empty.
      ++sequence;
      stop = static_cast<int>(sequences.end(sequence) - first);
    } while (i >= stop && sequence < last);
    return true;
  }
};

// Sequences [begin, end), at least one.
__device__ __forceinline__ TokenRun RunOf(const PackedSequences& sequences,
                                          int begin, int end) {
  TokenRun run{sequences, sequences.begin(begin)};
  run.tokens = static_cast<int>(sequences.end(end - 1) - run.first);
  run.sequence = begin;
  run.last = end - 1;
  run.stop = static_cast<int>(sequences.end(begin) - run.first);
  return run;
}

// The sum over `lanes` threads of each of as many values; `lane` keeps the one
// of its number. Every value is summed in the same order.
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

// `value` of the lane numbered `from`.
template <int kLanes>
__device__ __forceinline__ float FromLane(float value, int from) {
  if constexpr (kLanes == 1) return value;
  return __shfl_sync(0xffffffffu, value, from, kLanes);
}

// kOutput: y is computed, else the sum of s.
template <typename T, int kStates, int kLanes, int kChannels, bool kOutput>
class LaneScan {
 public:
  static_assert(kLanes == 1 || kChannels == 1);

  static constexpr int kOwn = kStates / kLanes;  // States of a thread.

  // B and C of two tiles: of each token, lane after lane, what the lane reads.
  using Tiles = simt::Shared<float, 2 * kScanTile * 2 * kStates>;

  // For the thread's channels, from `d` on; beyond the last channel the thread
  // gives no output.
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

  // Walks over the run, the same for all threads of the block. `working` is
  // the same for all of a warp: without it, the warp only helps to fill the
  // tiles.
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
  float s_sum = 0;  // Of the lane's tokens.

  __device__ __forceinline__ bool active() const { return active_; }
  __device__ __forceinline__ int d() const { return d_; }
  __device__ __forceinline__ int lane() const { return lane_; }

 private:
  // Tokens that are loaded and prepared together: their special functions do
  // not wait for each other.
  static constexpr int kUnit = kLanes == 1 && kChannels * kStates > 8 ? 4 : 8;
  static constexpr int kLoads = kUnit / kLanes;  // Tokens of a lane.
  // Units between a load and its use: some 900 cycles, the latency of memory.
  static constexpr int kAhead = kLanes >= 4 ? 4 : kLanes * 8 / kUnit;
  static constexpr int kTileSize = kScanTile * 2 * kStates;
  // Values of a tile that a thread of the smallest block brings.
  static constexpr int kStaged = kTileSize / kLeastScanThreads;

  using Values = simt::Vector<T, kChannels>;
  struct Unit {
    Values u[kLoads], dt[kLoads];
  };
  struct Staged {
    T values[kStaged];
  };

  // `rows` rows of `stride` values after p, by one instruction: the product of
  // 32-bit factors, the sum of 64.
  template <typename U>
  static __device__ __forceinline__ U* After(U* p, int rows, int stride) {
    return p + int64_t{rows} * stride;
  }

  __device__ __forceinline__ void SetPointers(const TokenRun& run) {
    const int64_t first = run.first + lane_;
    u_ = args_.u + first * args_.u_stride + d_;
    dt_ = args_.dt + first * args_.dt_stride + d_;
    y_ = args_.y + first * args_.y_stride + d_;
    // A thread brings one state of B or of C, of every so many tokens.
    const int n = threadIdx.x % kStates;
    const int of_c = threadIdx.x / kStates % 2;
    const int64_t token = run.first + threadIdx.x / (2 * kStates);
    bc_ = (of_c ? args_.C : args_.B) + token * args_.bc_stride + n;
    bc_place_ = (n / kOwn * 2 + of_c) * kOwn + n % kOwn;
  }

  // Loads the unit at token i, the next one that was not loaded.
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

  // The thread's values of the tile at token `begin`, the next one; zeros
  // beyond the run.
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

  // The unit at token i, whose B and C begin at `tile`.
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

  // kWhole: all tokens of the unit are of the sequence that the state is of.
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
  const T* u_;    // Of the lane's first token of the next unit to load,
  const T* dt_;   // and
  T* y_;          // of the unit that is computed.
  const T* bc_;   // What the thread brings of the next tile,
  int bc_place_;  // and its place among the values of a token.
  Unit queue_[kAhead];
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SCAN_LANES_H_
