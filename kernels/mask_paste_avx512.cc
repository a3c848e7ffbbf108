#include "kernels/mask_paste_simd.h"
#include "kernels/vec16.h"

namespace sfmamba {

void MaskPasteAvx512(const MaskPasteArgs& args, const ResizeTaps& columns,
                     const ResizeTaps& rows) {
  Paste<Vec16>(args, columns, rows);
}

}  // namespace sfmamba
