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

// Resizes a heat map bilinearly to the picture, or its crop, and encodes it as
// an 8-bit grey PNG, in pieces. What the model's input did not show is 0.
// Thread-compatible.
class HeatMapEncoder {
 public:
  // `map` has values, all of them finite.
  HeatMapEncoder(const model::HeatMap& map, const image::PictureFrame& frame);

  // How long one thread is expected to encode a map of this size.
  static absl::Duration Cost(const image::PictureSize& size);

  bool done() const { return png_.done(); }
  absl::Duration NextCost() const;
  absl::Status EncodeNext();  // INTERNAL if libpng fails.
  int64_t bytes() const { return png_.bytes(); }
  v1::HeatMap Take();  // Once, when done().

 private:
  // The two values that a row or a column lies between, and the part of the
  // second one. `first` is -1 outside of the input.
  struct Place {
    int first = -1, second = -1;
    float part = 0;
  };
  // The places of `size` rows or columns, of which the input covers `min` to
  // `max`, in a map with `values` of them.
  static std::vector<Place> Places(int size, float min, float max, int values);
  void FillRow(int y, uint8_t* row);

  v1::HeatMap answer_;      // Gets its PNG at the end.
  std::vector<float> map_;  // Scaled to 0..255.
  const int map_width_;
  const std::vector<Place> rows_, columns_;
  std::vector<float> blend_;  // A row of the map.
  base::GreyPngEncoder png_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_HEAT_MAP_ENCODER_H_
