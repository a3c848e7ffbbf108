#ifndef SFMAMBA_SERVER_IMAGE_KEEP_RATIO_H_
#define SFMAMBA_SERVER_IMAGE_KEEP_RATIO_H_

#include "server/image/image.h"

namespace sfmamba::image {

// The preprocessing of detectors and segmenters, as in mmdetection and
// mmsegmentation. Source: docs/network.md, "Preprocessing".

// Returns the largest size with the same aspect ratio whose shorter side is at
// most `short_side` and whose longer side is at most `long_side`. The ratio may
// change by rounding. Each side has at least one pixel. Small pictures are
// enlarged. `size` must not be empty.
PictureSize KeepRatioSize(const PictureSize& size, int short_side,
                          int long_side);

// Resizes 8-bit pixels bilinearly like OpenCV's INTER_LINEAR, bit for bit. Runs
// on the calling thread only. Neither size may be empty.
RgbImage ResizeBilinear(RgbImage image, const PictureSize& size);
// Resizes the pixels of `image` inside `part`, as if they were a whole picture.
RgbImage ResizeBilinear(const RgbImage& image, const PixelRect& part,
                        const PictureSize& size);

// Makes OpenCV run on the calling thread, in the whole process. By default,
// OpenCV divides rows among its own threads.
void UseOneOpenCvThread();

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_KEEP_RATIO_H_
