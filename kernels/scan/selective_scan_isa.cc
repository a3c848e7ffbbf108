#include "kernels/scan/selective_scan_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

template <typename T>
void SelectiveScanIsa(const SelectiveScanArgs<T>& args) {
  switch (args.states) {
    case 1:
      return ScanChannels<VecIsa, 1>(args);
    case 8:
      return ScanChannels<VecIsa, 8>(args);
    default:
      return ScanChannels<VecIsa, 16>(args);
  }
}

template void SelectiveScanIsa(const SelectiveScanArgs<float>&);
template void SelectiveScanIsa(const SelectiveScanArgs<BFloat16>&);

}  // namespace sfmamba::kernels
