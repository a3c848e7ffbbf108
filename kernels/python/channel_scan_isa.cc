#include "kernels/python/channel_scan_gradient_simd.h"
#include "kernels/python/channel_scan_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

template <typename T>
void ChannelScanIsa(const ChannelScanArgs<T>& args,
                    const ChannelScanForward<T>& results) {
  Scan<VecIsa>(args, results);
}

template <typename T>
void ChannelScanGradientIsa(const ChannelScanArgs<T>& args,
                            const ChannelScanBackward<T>& gradients) {
  ScanGradient<VecIsa>(args, gradients);
}

template void ChannelScanIsa(const ChannelScanArgs<float>&,
                             const ChannelScanForward<float>&);
template void ChannelScanIsa(const ChannelScanArgs<BFloat16>&,
                             const ChannelScanForward<BFloat16>&);
template void ChannelScanGradientIsa(const ChannelScanArgs<float>&,
                                     const ChannelScanBackward<float>&);
template void ChannelScanGradientIsa(const ChannelScanArgs<BFloat16>&,
                                     const ChannelScanBackward<BFloat16>&);

}  // namespace sfmamba::kernels
