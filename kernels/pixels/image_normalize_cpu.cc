#include "kernels/pixels/image_normalize.h"

namespace sfmamba::kernels {

template <typename T>
void ImageNormalizeCpu(const ImageNormalizeArgs<T>& args) {
  // A byte has only 256 values, so each result is computed once and looked up.
  T table[3][256];
  for (int c = 0; c < 3; ++c) {
    for (int v = 0; v < 256; ++v) {
      const float scaled = static_cast<float>(v) / 255.0f;
      table[c][v] = static_cast<T>((scaled - args.mean[c]) / args.std[c]);
    }
  }
  const uint8_t* rgb = args.rgb;
  for (int64_t i = 0; i < args.height; ++i) {
    T* y = args.y + i * args.row_stride;
    for (int64_t j = 0; j < args.width; ++j) {
      y[0] = table[0][rgb[0]];
      y[args.channel_stride] = table[1][rgb[args.rgb_channel_stride]];
      y[2 * args.channel_stride] = table[2][rgb[2 * args.rgb_channel_stride]];
      rgb += args.rgb_pixel_stride;
      y += args.pixel_stride;
    }
  }
}

template void ImageNormalizeCpu(const ImageNormalizeArgs<float>&);
template void ImageNormalizeCpu(const ImageNormalizeArgs<BFloat16>&);

}  // namespace sfmamba::kernels
