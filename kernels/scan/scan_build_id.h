#ifndef SFMAMBA_KERNELS_SCAN_SCAN_BUILD_ID_H_
#define SFMAMBA_KERNELS_SCAN_SCAN_BUILD_ID_H_

namespace sfmamba::kernels {

// Which CUDA scan this program was built with: 16 hexadecimal digits that
// change with its sources, so that what was measured of an older one is not
// used. BUILD writes the .cc.
const char* ScanBuildId();

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SCAN_BUILD_ID_H_
