#include "kernels/simd/bytes_isa.h"
#include "kernels/vision/fixed_point_resize_simd.h"

namespace sfmamba::kernels {

void ResizeRowsIsa(const ResizeRowsArgs& args) { NarrowRows<BytesIsa>(args); }

void CombineRowsIsa(const CombineRowsArgs& args) { WeighRows<BytesIsa>(args); }

}  // namespace sfmamba::kernels
