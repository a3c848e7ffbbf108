#include "kernels/simd/bytes_isa.h"
// Follows the registers, since it names their templates.
#include "kernels/pixels/fixed_point_resize_simd.h"

namespace sfmamba::kernels {

void ResizeRowsIsa(const ResizeRowsArgs& args) { NarrowRows<BytesIsa>(args); }

void CombineRowsIsa(const CombineRowsArgs& args) { WeighRows<BytesIsa>(args); }

}  // namespace sfmamba::kernels
