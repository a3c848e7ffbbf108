#include "kernels/detection/mask_paste_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

void MaskPasteIsa(const MaskPasteArgs& args, const ResizeTaps& columns,
                  const ResizeTaps& rows) {
  Paste<VecIsa>(args, columns, rows);
}

}  // namespace sfmamba::kernels
