#include "kernels/gelu_simd.h"
#include "kernels/vec8.h"

namespace sfmamba {

template <typename T>
void GeluErfAvx2(const GeluArgs<T>& args) {
  Apply<Vec8>(args, GeluErf());
}

template <typename T>
void GeluTanhAvx2(const GeluArgs<T>& args) {
  Apply<Vec8>(args, GeluTanh());
}

template void GeluErfAvx2(const GeluArgs<float>&);
template void GeluErfAvx2(const GeluArgs<BFloat16>&);
template void GeluTanhAvx2(const GeluArgs<float>&);
template void GeluTanhAvx2(const GeluArgs<BFloat16>&);

}  // namespace sfmamba
