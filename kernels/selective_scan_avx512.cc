#include "kernels/selective_scan_simd.h"
#include "kernels/vec16.h"

namespace sfmamba {

template <typename T>
void SelectiveScanAvx512(const SelectiveScanArgs<T>& args) {
  if (args.states == 8) {
    ScanChannels<Vec16, 8>(args);
  } else {
    ScanChannels<Vec16, 16>(args);
  }
}

template void SelectiveScanAvx512(const SelectiveScanArgs<float>&);
template void SelectiveScanAvx512(const SelectiveScanArgs<BFloat16>&);

}  // namespace sfmamba
