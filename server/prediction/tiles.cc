#include "server/prediction/tiles.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "server/errors/reasons.h"

namespace sfmamba::prediction {
namespace {

constexpr float kDefaultOverlap = 0.2f, kMostOverlap = 0.9f;
constexpr int kLargestSide = 65535;  // Longer ones are not decoded.

float OverlapOf(const v1::Tiles& tiles) {
  return tiles.has_overlap() ? tiles.overlap() : kDefaultOverlap;
}

// The pixels from one tile to the next.
int Step(int tile, float overlap) {
  // The product is rounded to float, so that 0.7 of 10 pixels is 7.
  return tile - static_cast<int>(overlap * tile);
}

// The number of tiles along a side.
int64_t Count(int side, int tile, float overlap) {
  if (tile >= side) return 1;
  const int step = Step(tile, overlap);
  return 1 + (side - tile + step - 1) / step;
}

int64_t Count(const image::PictureSize& picture, const image::PictureSize& tile,
              float overlap) {
  return Count(picture.width, tile.width, overlap) *
         Count(picture.height, tile.height, overlap);
}

// The size of the request's tiles for a model.
image::PictureSize TileSize(const v1::Tiles& tiles,
                            const model::ModelConfig& model) {
  const int own = model.resize == model::Resize::kKeepRatio ? model.short_side
                                                            : model.image_size;
  return {tiles.height() > 0 ? tiles.height() : own,
          tiles.width() > 0 ? tiles.width() : own};
}

}  // namespace

absl::Status ValidateTiles(const v1::Tiles& tiles) {
  absl::Status status =
      CheckRange("params.tiles.width", tiles.width(), kLargestSide);
  status.Update(
      CheckRange("params.tiles.height", tiles.height(), kLargestSide));
  status.Update(
      CheckFraction("params.tiles.overlap", OverlapOf(tiles), kMostOverlap));
  status.Update(
      CheckFraction("params.tiles.match_threshold", tiles.match_threshold()));
  status.Update(CheckRange("params.tiles.max_tiles", tiles.max_tiles(),
                           std::numeric_limits<int>::max()));
  return status;
}

std::vector<image::PixelRect> CutIntoTiles(const image::PictureSize& picture,
                                           const image::PictureSize& tile,
                                           float overlap) {
  const int width = std::min(tile.width, picture.width);
  const int height = std::min(tile.height, picture.height);
  std::vector<image::PixelRect> tiles;
  tiles.reserve(Count(picture, tile, overlap));
  for (int top = 0;; top += Step(height, overlap)) {
    top = std::min(top, picture.height - height);
    for (int left = 0;; left += Step(width, overlap)) {
      left = std::min(left, picture.width - width);
      tiles.push_back({left, top, width, height});
      if (left + width == picture.width) break;
    }
    if (top + height == picture.height) break;
  }
  return tiles;
}

absl::Status DivideIntoTiles(const v1::Tiles& tiles,
                             const model::ModelConfig& model, int most,
                             ImageFacts* image) {
  if (tiles.max_tiles() > 0) most = std::min(most, tiles.max_tiles());
  const float overlap = OverlapOf(tiles);
  const auto images = [&](const image::PictureSize& tile) {
    const int64_t count = Count(image->seen, tile, overlap);
    return count == 1 || tiles.without_picture() ? count : count + 1;
  };
  image::PictureSize tile = TileSize(tiles, model);
  const int64_t needed = images(tile);
  if (needed > most) {
    // A tile as large as the picture always fits. No side becomes larger.
    const auto grow = [](int side, int picture) {
      return std::max(side, std::min(side + side / 8 + 1, picture));
    };
    while (images(tile) > most) {
      tile.width = grow(tile.width, image->seen.width);
      tile.height = grow(tile.height, image->seen.height);
    }
    return server::TooManyTiles(needed, most, tile.width, tile.height);
  }
  for (const image::PixelRect& region :
       CutIntoTiles(image->seen, tile, overlap)) {
    image->parts.push_back(PartOf(model, region));
  }
  if (needed > static_cast<int64_t>(image->parts.size())) {
    image->parts.push_back(
        PartOf(model, {0, 0, image->seen.width, image->seen.height}));
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::prediction
