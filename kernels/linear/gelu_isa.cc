#include "kernels/linear/gelu_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

template <typename T>
void GeluErfIsa(const GeluArgs<T>& args) {
  Apply<VecIsa>(args, GeluErf());
}

template <typename T>
void GeluTanhIsa(const GeluArgs<T>& args) {
  Apply<VecIsa>(args, GeluTanh());
}

template void GeluErfIsa(const GeluArgs<float>&);
template void GeluErfIsa(const GeluArgs<BFloat16>&);
template void GeluTanhIsa(const GeluArgs<float>&);
template void GeluTanhIsa(const GeluArgs<BFloat16>&);

}  // namespace sfmamba::kernels
