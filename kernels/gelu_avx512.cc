#include "kernels/gelu_simd.h"
#include "kernels/vec16.h"

namespace sfmamba {

template <typename T>
void GeluErfAvx512(const GeluArgs<T>& args) {
  Apply<Vec16>(args, GeluErf());
}

template <typename T>
void GeluTanhAvx512(const GeluArgs<T>& args) {
  Apply<Vec16>(args, GeluTanh());
}

template void GeluErfAvx512(const GeluArgs<float>&);
template void GeluErfAvx512(const GeluArgs<BFloat16>&);
template void GeluTanhAvx512(const GeluArgs<float>&);
template void GeluTanhAvx512(const GeluArgs<BFloat16>&);

}  // namespace sfmamba
