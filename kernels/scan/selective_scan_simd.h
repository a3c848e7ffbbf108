// The selective scan by vectors of type V, one channel per lane.
// selective_scan_isa.cc includes this header and is compiled once for each
// instruction set, with a different V.
#ifndef SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_SIMD_H_
#define SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_SIMD_H_

#include "kernels/scan/selective_scan.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// The number of tokens per tile. One loop computes the softplus for a tile's
// tokens, and a second loop runs the recurrence. Each loop uses fewer constants
// and variables than a single loop would, so more of them stay in registers.
constexpr int kTile = 32;

// The inputs B and C of a tile's tokens as fp32. All channels use the same B
// and C.
template <int kStates>
struct TileInputs {
  template <typename T>
  void Read(const SelectiveScanArgs<T>& args, int64_t tile, int tokens) {
    for (int i = 0; i < tokens; ++i) {
      for (int n = 0; n < kStates; ++n) {
        const int64_t source = (tile + i) * args.bc_stride + n;
        B[i][n] = static_cast<float>(args.B[source]);
        C[i][n] = static_cast<float>(args.C[source]);
      }
    }
  }

  float B[kTile][kStates];
  float C[kTile][kStates];
};

// Scans one sequence for kWidth channels, tile by tile. Computes in base 2. Let
// s = log2(1 + exp(dt + bias)). Then delta = s * ln(2), and
// exp(delta * A) = 2^(A * s).
template <typename V, int kStates, typename T>
class ChannelBlock {
 public:
  // Starts a sequence, with state 0, for up to kWidth channels, which begin
  // with channel `channel`.
  void Start(const SelectiveScanArgs<T>& args, int channel) {
    args_ = &args;
    channel_ = channel;
    const int rest = args.channels - channel;
    lanes_ = rest < V::kWidth ? rest : V::kWidth;
    V steepest = V::Set(0.0f);
    for (int n = 0; n < kStates; ++n) {
      const V A = LoadLanes(args.A + n * args.a_stride + channel);
      A.Store(A_[n]);
      V::Set(0.0f).Store(h_[n]);
      steepest = MaxMagnitude(steepest, Abs(A));
    }
    steepest_ = steepest;
    D_ = LoadLanes(args.D + channel);
    bias_ = LoadLanes(args.bias + channel) * V::Set(kLog2E);
  }

  // Scans the next tile. It begins at token `tile` and has `tokens` tokens, at
  // most kTile.
  void ScanTile(const TileInputs<kStates>& inputs, int64_t tile, int tokens) {
    Prepare(tile, tokens);
    // The condition is false if any value is a NaN. The two functions differ
    // only for products of magnitude 126 and more. The limit is below 126, so
    // the choice never changes a token's result.
    if (V::All(LessEqual(largest_s_ * steepest_, V::Set(125.0f)))) {
      Recur<Exp2Products<kGroup, V>>(inputs, tile, tokens);
    } else {
      Recur<Exp2ProductsAnyRange<kGroup, V>>(inputs, tile, tokens);
    }
  }

 private:
  // The number of states whose decays are computed together.
  static constexpr int kGroup = kStates < 4 ? kStates : 4;

  template <typename U>
  V LoadLanes(const U* p) const {
    return kernels::LoadLanes<V>(p, lanes_);
  }

  // Computes s_, g_ = delta*u and y_ = D*u for the tokens of a tile.
  void Prepare(int64_t tile, int tokens) {
    V largest = V::Set(0.0f);
    for (int i = 0; i < tokens; ++i) {
      const V u = LoadLanes(args_->u + (tile + i) * args_->u_stride + channel_);
      const V dt =
          LoadLanes(args_->dt + (tile + i) * args_->dt_stride + channel_);
      const V s = Softplus2(Fma(dt, V::Set(kLog2E), bias_));
      largest = MaxMagnitude(largest, s);
      s.Store(s_[i]);
      (s * (V::Set(kLn2) * u)).Store(g_[i]);
      (D_ * u).Store(y_[i]);
    }
    largest_s_ = largest;
  }

  template <void (*kDecay)(const V* A, V s, V* decay)>
  void Recur(const TileInputs<kStates>& inputs, int64_t tile, int tokens) {
    T* y = args_->y + tile * args_->y_stride + channel_;
    V h[kStates];
    for (int n = 0; n < kStates; ++n) h[n] = V::Load(h_[n]);
    for (int i = 0; i < tokens; ++i) {
      const V s = V::Load(s_[i]);
      const V g = V::Load(g_[i]);
      V sum[2] = {V::Load(y_[i]), V::Set(0.0f)};
      for (int group = 0; group < kStates; group += kGroup) {
        V A[kGroup], decay[kGroup];
        for (int m = 0; m < kGroup; ++m) A[m] = V::Load(A_[group + m]);
        kDecay(A, s, decay);
        for (int m = 0; m < kGroup; ++m) {
          const int n = group + m;
          h[n] = Fma(decay[m], h[n], g * V::Set(inputs.B[i][n]));
          sum[n % 2] = Fma(V::Set(inputs.C[i][n]), h[n], sum[n % 2]);
        }
      }
      StoreLanes(sum[0] + sum[1], y, lanes_);
      y += args_->y_stride;
    }
    for (int n = 0; n < kStates; ++n) h[n].Store(h_[n]);
  }

  const SelectiveScanArgs<T>* args_;
  int channel_;
  int lanes_;   // The number of channels, at most kWidth.
  V steepest_;  // The largest |A| of each channel.
  V D_;
  V bias_;       // The bias times log2(e).
  V largest_s_;  // The largest s of each channel in the tile.
  alignas(64) float A_[kStates][V::kWidth];
  alignas(64) float h_[kStates][V::kWidth];  // The state.
  alignas(64) float s_[kTile][V::kWidth];
  alignas(64) float g_[kTile][V::kWidth];
  alignas(64) float y_[kTile][V::kWidth];
};

// Scans one sequence, the tokens [begin, end), for the channels of kBlocks
// blocks. Scans each tile for all blocks before the next tile, while the tile
// is in the cache.
template <typename V, int kStates, int kBlocks, typename T>
void ScanBlocks(const SelectiveScanArgs<T>& args, int channel, int64_t begin,
                int64_t end) {
  TileInputs<kStates> inputs;
  ChannelBlock<V, kStates, T> blocks[kBlocks];
  for (int b = 0; b < kBlocks; ++b)
    blocks[b].Start(args, channel + b * V::kWidth);
  for (int64_t tile = begin; tile < end; tile += kTile) {
    const int tokens =
        end - tile < kTile ? static_cast<int>(end - tile) : kTile;
    inputs.Read(args, tile, tokens);
    for (int b = 0; b < kBlocks; ++b) blocks[b].ScanTile(inputs, tile, tokens);
  }
}

// Scans one sequence after another, because a sequence fits into the
// second-level cache and a batch does not.
template <typename V, int kStates, typename T>
void ScanChannels(const SelectiveScanArgs<T>& args) {
  constexpr int kChannels = 16;  // The number of floats in a cache line.
  for (int k = 0; k < args.sequences.count; ++k) {
    const int64_t begin = args.sequences.begin(k), end = args.sequences.end(k);
    int channel = 0;
    for (; channel + kChannels <= args.channels; channel += kChannels) {
      ScanBlocks<V, kStates, kChannels / V::kWidth>(args, channel, begin, end);
    }
    for (; channel < args.channels; channel += V::kWidth) {
      ScanBlocks<V, kStates, 1>(args, channel, begin, end);
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_SIMD_H_
