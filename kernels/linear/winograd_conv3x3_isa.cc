#include "kernels/linear/winograd_conv3x3_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

void WinogradInputIsa(const WinogradConv3x3Args& args,
                      const WinogradBlock& block) {
  WinogradInput<VecIsa>(args, block);
}

void WinogradOutputIsa(const WinogradConv3x3Args& args,
                       const WinogradBlock& block) {
  WinogradOutput<VecIsa>(args, block);
}

}  // namespace sfmamba::kernels
