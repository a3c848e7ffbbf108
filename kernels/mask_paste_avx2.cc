#include "kernels/mask_paste_simd.h"
#include "kernels/vec8.h"

namespace sfmamba {

void MaskPasteAvx2(const MaskPasteArgs& args, const ResizeTaps& columns,
                   const ResizeTaps& rows) {
  Paste<Vec8>(args, columns, rows);
}

}  // namespace sfmamba
