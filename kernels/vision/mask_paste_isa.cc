#include "kernels/simd/vec_isa.h"
#include "kernels/vision/mask_paste_simd.h"

namespace sfmamba::kernels {

void MaskPasteIsa(const MaskPasteArgs& args, const ResizeTaps& columns,
                  const ResizeTaps& rows) {
  Paste<VecIsa>(args, columns, rows);
}

}  // namespace sfmamba::kernels
