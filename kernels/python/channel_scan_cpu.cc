#include <algorithm>
#include <type_traits>

#include "kernels/python/channel_scan.h"
#include "kernels/python/scalar.h"
// These must be included after scalar.h, because they call functions of
// scalar.h.
#include "kernels/python/channel_scan_gradient_simd.h"
#include "kernels/python/channel_scan_simd.h"

namespace sfmamba::kernels {
namespace {

// Returns `channels` rounded up to a multiple of 16, which is the number of
// lanes in the widest vector (AVX-512). An array of this size consists of whole
// vectors for every instruction set.
int64_t Padded(int channels) { return (channels + 15) / 16 * 16; }

}  // namespace

template <typename T>
void ChannelScan(const ChannelScanArgs<T>& args,
                 const ChannelScanForward<T>& results, CpuIsa isa) {
  if constexpr (!std::is_same_v<T, double>) {
    if (isa == CpuIsa::kAvx512) return ChannelScanAvx512(args, results);
    if (isa == CpuIsa::kAvx2) return ChannelScanAvx2(args, results);
  }
  Scan<Scalar<Arithmetic<T>>>(args, results);
}

template <typename T>
void ChannelScanGradient(const ChannelScanArgs<T>& args,
                         const ChannelScanBackward<T>& gradients, CpuIsa isa) {
  if constexpr (!std::is_same_v<T, double>) {
    if (isa == CpuIsa::kAvx512)
      return ChannelScanGradientAvx512(args, gradients);
    if (isa == CpuIsa::kAvx2) return ChannelScanGradientAvx2(args, gradients);
  }
  ScanGradient<Scalar<Arithmetic<T>>>(args, gradients);
}

template <typename T>
int64_t ScanScratch(const ChannelScanArgs<T>& args) {
  // The scratch memory holds A and h of all channels, and B and C of a tile.
  return args.states * (2 * Padded(args.channels) + 2 * kTile);
}

template <typename T>
int64_t BackwardScratch(const ChannelScanArgs<T>& args) {
  const int64_t tiles =
      (std::min(args.period, args.tokens) + kTile - 1) / kTile;
  // In addition, the scratch memory holds the gradients of h and A, h at the
  // start of each tile, and the gradients of a tile's B and C for each lane.
  return ScanScratch(args) +
         args.states * ((2 + tiles) * Padded(args.channels) + 2 * kTile * 16);
}

template void ChannelScan(const ChannelScanArgs<float>&,
                          const ChannelScanForward<float>&, CpuIsa);
template void ChannelScan(const ChannelScanArgs<BFloat16>&,
                          const ChannelScanForward<BFloat16>&, CpuIsa);
template void ChannelScan(const ChannelScanArgs<double>&,
                          const ChannelScanForward<double>&, CpuIsa);
template void ChannelScanGradient(const ChannelScanArgs<float>&,
                                  const ChannelScanBackward<float>&, CpuIsa);
template void ChannelScanGradient(const ChannelScanArgs<BFloat16>&,
                                  const ChannelScanBackward<BFloat16>&, CpuIsa);
template void ChannelScanGradient(const ChannelScanArgs<double>&,
                                  const ChannelScanBackward<double>&, CpuIsa);
template int64_t ScanScratch(const ChannelScanArgs<float>&);
template int64_t ScanScratch(const ChannelScanArgs<BFloat16>&);
template int64_t ScanScratch(const ChannelScanArgs<double>&);
template int64_t BackwardScratch(const ChannelScanArgs<float>&);
template int64_t BackwardScratch(const ChannelScanArgs<BFloat16>&);
template int64_t BackwardScratch(const ChannelScanArgs<double>&);

}  // namespace sfmamba::kernels
