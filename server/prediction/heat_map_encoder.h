#ifndef SFMAMBA_SERVER_PREDICTION_HEAT_MAP_ENCODER_H_
#define SFMAMBA_SERVER_PREDICTION_HEAT_MAP_ENCODER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/png_encoder.h"
#include "model/result.h"
#include "server/image/image_input.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// Resizes a heat map bilinearly to the size of the picture. If the request has
// a crop, resizes the heat map to the size of the crop instead. Encodes the
// result as an 8-bit grey PNG in steps. Pixels outside the model's input are 0.
// Thread-compatible.
class HeatMapEncoder {
 public:
  // `map` must not be empty, and all values must be finite.
  HeatMapEncoder(const model::HeatMap& map, const image::PictureFrame& frame);

  // Estimates how long one thread takes to encode a PNG of this size.
  static absl::Duration Cost(const image::PictureSize& size);

  bool done() const { return png_.done(); }
  absl::Duration NextCost() const;
  absl::Status EncodeNext();  // Returns INTERNAL if libpng fails.
  int64_t bytes() const { return png_.bytes(); }
  v1::HeatMap Take();  // May be called only once, after done() becomes true.

 private:
  // The rows of the heat map from which a row of the PNG is interpolated. The
  // two rows are `first` and `second`. `part` is the weight of `second`, from 0
  // to 1. If the PNG row lies outside the model's input, `first` is -1. For a
  // column of the PNG, the fields refer to columns of the heat map.
  struct Place {
    int first = -1, second = -1;
    float part = 0;
  };
  // Returns the Place of each of the PNG's `size` rows. The heat map has
  // `values` rows, which cover the height of the model's input. The top and the
  // bottom of the input lie at `min` and `max`, in fractions of the PNG's
  // height. The function also computes the Place of each column. The caller
  // then passes numbers of columns as `size` and `values`. `min` and `max` are
  // then the left and the right side of the input, in fractions of the width.
  static std::vector<Place> Places(int size, float min, float max, int values);
  void FillRow(int y, uint8_t* row);

  v1::HeatMap answer_;      // The result. Take() adds the PNG.
  std::vector<float> map_;  // The heat map, scaled to 0..255.
  const int map_width_;
  const std::vector<Place> rows_, columns_;
  std::vector<float> blend_;  // One interpolated row of the map.
  base::GreyPngEncoder png_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_HEAT_MAP_ENCODER_H_
