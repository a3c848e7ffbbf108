#include "kernels/vec8.h"
#include "kernels/winograd_conv3x3_simd.h"

namespace sfmamba {

void WinogradInputAvx2(const WinogradConv3x3Args& args,
                       const WinogradBlock& block) {
  WinogradInput<Vec8>(args, block);
}

void WinogradOutputAvx2(const WinogradConv3x3Args& args,
                        const WinogradBlock& block) {
  WinogradOutput<Vec8>(args, block);
}

}  // namespace sfmamba
