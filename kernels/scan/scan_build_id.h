#ifndef SFMAMBA_KERNELS_SCAN_SCAN_BUILD_ID_H_
#define SFMAMBA_KERNELS_SCAN_SCAN_BUILD_ID_H_

namespace sfmamba::kernels {

// Returns a hash, 16 hexadecimal digits, of the CUDA scan's sources. Times that
// were measured with another hash are not reused. BUILD generates the .cc.
const char* ScanBuildId();

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SCAN_BUILD_ID_H_
