#include "kernels/selective_scan_simd.h"
#include "kernels/vec8.h"

namespace sfmamba {

template <typename T>
void SelectiveScanAvx2(const SelectiveScanArgs<T>& args) {
  if (args.states == 8) {
    ScanChannels<Vec8, 8>(args);
  } else {
    ScanChannels<Vec8, 16>(args);
  }
}

template void SelectiveScanAvx2(const SelectiveScanArgs<float>&);
template void SelectiveScanAvx2(const SelectiveScanArgs<BFloat16>&);

}  // namespace sfmamba
