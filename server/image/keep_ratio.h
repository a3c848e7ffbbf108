#ifndef SFMAMBA_SERVER_IMAGE_KEEP_RATIO_H_
#define SFMAMBA_SERVER_IMAGE_KEEP_RATIO_H_

#include "server/image/image.h"

namespace sfmamba::image {

// This file resizes pictures for detectors and segmenters, as mmdetection and
// mmsegmentation do. Source: docs/network.md, "Preprocessing".

// Returns the size to which a picture of size `size` is resized. This is the
// largest size with the same aspect ratio whose shorter side is at most
// `short_side` and whose longer side is at most `long_side`. Small pictures are
// enlarged. Sides are rounded to at least one pixel. `size` must not be empty.
PictureSize KeepRatioSize(const PictureSize& size, int short_side,
                          int long_side);

// Resizes 8-bit pixels bilinearly like OpenCV's INTER_LINEAR, with identical
// results. Runs only on the calling thread. The sizes of `image` and of the
// result must not be empty.
RgbImage ResizeBilinear(RgbImage image, const PictureSize& size);
// Resizes the pixels of `image` inside `part`, as if the part were a whole
// picture.
RgbImage ResizeBilinear(const RgbImage& image, const PixelRect& part,
                        const PictureSize& size);

// Makes all later OpenCV calls in this process run only on their calling
// thread. By default, OpenCV divides the rows of a picture among its own
// threads.
void UseOneOpenCvThread();

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_KEEP_RATIO_H_
