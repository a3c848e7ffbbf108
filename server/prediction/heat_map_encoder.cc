#include "server/prediction/heat_map_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sfmamba::prediction {
namespace {

constexpr int64_t kPiecePixels = 1 << 18;
constexpr absl::Duration kPerPixel = absl::Nanoseconds(8);

}  // namespace

HeatMapEncoder::HeatMapEncoder(const model::HeatMap& map,
                               const image::PictureFrame& frame)
    : map_(map.values),
      map_width_(map.width),
      rows_(Places(frame.seen.height, frame.input.y_min, frame.input.y_max,
                   map.height)),
      columns_(Places(frame.seen.width, frame.input.x_min, frame.input.x_max,
                      map.width)),
      blend_(map.width),
      png_(frame.seen.width, frame.seen.height, /*bit_depth=*/8) {
  answer_.set_class_id(map.class_id);
  answer_.set_width(frame.seen.width);
  answer_.set_height(frame.seen.height);
  const auto [low, high] = std::minmax_element(map_.begin(), map_.end());
  answer_.set_low(*low);
  answer_.set_high(*high);
  const float range = answer_.high() - answer_.low();
  for (float& value : map_) {
    value = range > 0 ? (value - answer_.low()) / range * 255 : 0;
  }
}

absl::Duration HeatMapEncoder::Cost(const image::PictureSize& size) {
  return size.pixels() * kPerPixel;
}

absl::Duration HeatMapEncoder::NextCost() const {
  return std::min<int64_t>(int64_t{1} * answer_.width() * answer_.height(),
                           kPiecePixels) *
         kPerPixel;
}

absl::Status HeatMapEncoder::EncodeNext() {
  const int rows = std::max<int>(1, kPiecePixels / answer_.width());
  return png_.AddRows(rows, [this](int y, uint8_t* row) { FillRow(y, row); });
}

v1::HeatMap HeatMapEncoder::Take() {
  answer_.set_png(png_.Take());
  return std::move(answer_);
}

std::vector<HeatMapEncoder::Place> HeatMapEncoder::Places(int size, float min,
                                                          float max,
                                                          int values) {
  std::vector<Place> places(size);
  for (int i = 0; i < size; ++i) {
    const float position = ((i + 0.5f) / size - min) / (max - min);
    if (position < 0 || position >= 1) continue;
    // Each value of the heat map applies to the centre of its cell. Values are
    // interpolated only between two centres. Outside the outermost centres, the
    // nearest value applies.
    const float at = std::clamp(position * values - 0.5f, 0.f, values - 1.f);
    Place& place = places[i];
    place.first = static_cast<int>(at);
    place.second = std::min(place.first + 1, values - 1);
    place.part = at - place.first;
  }
  return places;
}

void HeatMapEncoder::FillRow(int y, uint8_t* row) {
  std::memset(row, 0, columns_.size());
  const Place& across = rows_[y];
  if (across.first < 0) return;
  const float* upper = &map_[across.first * map_width_];
  const float* lower = &map_[across.second * map_width_];
  for (int x = 0; x < map_width_; ++x) {
    blend_[x] = upper[x] + (lower[x] - upper[x]) * across.part;
  }
  for (size_t x = 0; x < columns_.size(); ++x) {
    const Place& place = columns_[x];
    if (place.first < 0) continue;
    const float first = blend_[place.first];
    const float value = first + (blend_[place.second] - first) * place.part;
    row[x] = static_cast<uint8_t>(std::lround(value));
  }
}

}  // namespace sfmamba::prediction
