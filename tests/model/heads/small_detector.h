#ifndef SFMAMBA_TESTS_MODEL_HEADS_SMALL_DETECTOR_H_
#define SFMAMBA_TESTS_MODEL_HEADS_SMALL_DETECTOR_H_

#include <string>

#include "model/config.h"
#include "model/layers/features.h"
#include "tests/model/against_reference.h"

namespace sfmamba::heads {

// Returns a cascade of two box stages. Its numbers of channels, 7 and 19, are
// not multiples of a SIMD vector's length.
inline model::DetectorConfig SmallDetector() {
  model::DetectorConfig config;
  config.box_stages = 2;
  config.box_convs = 1;
  config.mask_convs = 1;
  config.channels = 7;
  config.fc_width = 19;
  config.box_roi_size = 3;
  config.mask_roi_size = 5;
  config.rpn_candidates = 40;
  config.proposals = 12;
  config.finest_scale = 12;
  return config;
}
constexpr int kSmallClasses = 5;

// The size in pixels of the images to which SmallPyramid() belongs.
constexpr int kSmallDetectorHeight = 65, kSmallDetectorWidth = 42;

// Returns maps of odd sizes, [images, channels, H, W]. Their strides are 4, 8,
// ..., 4 << (levels - 1).
inline layers::Features SmallPyramid(int64_t images, int64_t channels,
                                     int levels) {
  layers::Features maps;
  for (int i = 0; i < levels; ++i) {
    const int stride = 4 << i;
    maps.push_back(model::RandomValues(
        "level" + std::to_string(i),
        {images, channels, (kSmallDetectorHeight + stride - 1) / stride,
         (kSmallDetectorWidth + stride - 1) / stride}));
  }
  return maps;
}

}  // namespace sfmamba::heads

#endif  // SFMAMBA_TESTS_MODEL_HEADS_SMALL_DETECTOR_H_
