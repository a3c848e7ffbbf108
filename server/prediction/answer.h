#ifndef SFMAMBA_SERVER_PREDICTION_ANSWER_H_
#define SFMAMBA_SERVER_PREDICTION_ANSWER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/result.h"
#include "server/image/image.h"

namespace sfmamba::prediction {

// The answer to one image, with maps and masks encoded, in the words of no
// transport. Labels are views of the model's, which lives until the prediction
// is done.

struct Category {
  int class_id = 0;
  absl::string_view label;
  float score = 0;
};

// What each part of the picture adds to a class's logit, which is their mean.
struct HeatMap {
  int class_id = 0;
  int width = 0, height = 0;
  std::vector<float> values;  // [height, width], unless it is a PNG:
  std::string png;            // 8 bits, 0 for `low` and 255 for `high`.
  float low = 0, high = 0;
};

struct ClassificationAnswer {
  std::vector<Category> categories;  // Score descending, ties by class_id.
  std::vector<float> embedding;      // Empty unless it was asked for.
  std::vector<float> logits;         // One a class; empty unless asked for.
  std::optional<HeatMap> heat_map;   // Unset unless it was asked for.
};

// COCO's compressed run lengths, column-major, starting with zeros.
struct CocoRle {
  int height = 0;
  int width = 0;
  std::string counts;
};

// A 1-bit PNG of the box rounded outwards.
struct PngCrop {
  std::string bytes;
};

// What a classifier says of an object's box, or why it says nothing.
struct CropAnswer {
  absl::Status error;
  ClassificationAnswer answer;
};

struct DetectedObject {
  model::Box box;  // Pixels of the oriented picture, clipped to it.
  int class_id = 0;
  absl::string_view label;
  float score = 0;
  std::variant<std::monostate, CocoRle, PngCrop> mask;
  std::optional<CropAnswer> crop;  // Unset unless crops were asked for.
};

struct DetectionAnswer {
  image::PictureSize picture;
  std::vector<DetectedObject> objects;  // Score descending.
};

struct ClassRle {
  int class_id = 0;
  absl::string_view label;
  CocoRle rle;
};

// Class indices, row-major; of 2 bytes the low one comes first.
struct RawIndexMap {
  int bytes_per_pixel = 1;
  std::string data;
};

// Class indices as an 8-bit grey PNG, or a 16-bit one above 255 classes.
struct IndexPng {
  std::string bytes;
};

struct ClassArea {
  int class_id = 0;
  absl::string_view label;
  int64_t pixel_count = 0;
  float fraction = 0;  // Part of the map's pixels.
};

struct SegmentationAnswer {
  int height = 0;
  int width = 0;
  std::variant<IndexPng, std::vector<ClassRle>, RawIndexMap> map;
  std::vector<ClassArea> areas;  // The largest first; empty unless asked for.
  std::string confidence_png;    // Empty unless it was asked for.
};

using Answer =
    std::variant<ClassificationAnswer, DetectionAnswer, SegmentationAnswer>;

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_ANSWER_H_
