#include "kernels/vec16.h"
#include "kernels/winograd_conv3x3_simd.h"

namespace sfmamba {

void WinogradInputAvx512(const WinogradConv3x3Args& args,
                         const WinogradBlock& block) {
  WinogradInput<Vec16>(args, block);
}

void WinogradOutputAvx512(const WinogradConv3x3Args& args,
                          const WinogradBlock& block) {
  WinogradOutput<Vec16>(args, block);
}

}  // namespace sfmamba
