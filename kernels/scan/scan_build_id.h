#ifndef SFMAMBA_KERNELS_SCAN_SCAN_BUILD_ID_H_
#define SFMAMBA_KERNELS_SCAN_SCAN_BUILD_ID_H_

namespace sfmamba::kernels {

// Returns a hash of the CUDA scan's source files, as 16 hexadecimal digits.
// Times that were measured with another hash are not reused. A rule in BUILD
// generates the .cc file.
const char* ScanBuildId();

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SCAN_BUILD_ID_H_
