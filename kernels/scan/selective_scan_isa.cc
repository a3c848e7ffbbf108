#include "kernels/scan/selective_scan_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

template <typename T>
void SelectiveScanIsa(const SelectiveScanArgs<T>& args) {
  if (args.states == 8) {
    ScanChannels<VecIsa, 8>(args);
  } else {
    ScanChannels<VecIsa, 16>(args);
  }
}

template void SelectiveScanIsa(const SelectiveScanArgs<float>&);
template void SelectiveScanIsa(const SelectiveScanArgs<BFloat16>&);

}  // namespace sfmamba::kernels
