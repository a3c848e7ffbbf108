#include "kernels/simd/bytes_isa.h"
// Must be included after bytes_isa.h, because it uses names from that header.
#include "kernels/pixels/fixed_point_resize_simd.h"

namespace sfmamba::kernels {

void ResizeRowsIsa(const ResizeRowsArgs& args) { NarrowRows<BytesIsa>(args); }

void CombineRowsIsa(const CombineRowsArgs& args) { WeighRows<BytesIsa>(args); }

}  // namespace sfmamba::kernels
