#ifndef SFMAMBA_SERVER_IMAGE_KEEP_RATIO_H_
#define SFMAMBA_SERVER_IMAGE_KEEP_RATIO_H_

#include "server/image/image.h"

namespace sfmamba::image {

// The preprocessing of detectors and segmenters, as mmdetection's and
// mmsegmentation's is. Source: docs/network.md, "Preprocessing".

// The largest size of the same shape, up to rounding, whose sides do not exceed
// `short_side` and `long_side`, which way round it is; at least one pixel each
// way. Enlarges small pictures too. `size` is not empty.
PictureSize KeepRatioSize(const PictureSize& size, int short_side,
                          int long_side);

// Bilinear, on 8 bits, as OpenCV's INTER_LINEAR, bit for bit, on the calling
// thread alone. Neither size is empty.
RgbImage ResizeBilinear(RgbImage image, const PictureSize& size);
// The part of `image` inside `part`, resized as if it were a picture of its
// own.
RgbImage ResizeBilinear(const RgbImage& image, const PixelRect& part,
                        const PictureSize& size);

// Makes OpenCV compute on the thread that calls it, in all of the process; it
// would divide rows among threads of its own.
void UseOneOpenCvThread();

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_KEEP_RATIO_H_
