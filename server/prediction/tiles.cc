#include "server/prediction/tiles.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "server/errors/reasons.h"

namespace sfmamba::prediction {
namespace {

constexpr float kDefaultOverlap = 0.2f, kMostOverlap = 0.9f;
// The maximum side of a tile in pixels. The server accepts no larger pictures.
constexpr int kLargestSide = 65535;

float OverlapOf(const v1::Tiles& tiles) {
  return tiles.has_overlap() ? tiles.overlap() : kDefaultOverlap;
}

// Returns the side of the model's input, or its shorter side if the sides
// differ. If the request does not set a tile size, tiles are at least this
// large.
int InputSide(const model::ModelConfig& model) {
  return model.resize == model::Resize::kKeepRatio ? model.short_side
                                                   : model.image_size;
}

// Returns the tile size in the request. If a side is not set in the request,
// uses `side`.
image::PictureSize TileSize(const v1::Tiles& tiles, int side) {
  return {tiles.height() > 0 ? tiles.height() : side,
          tiles.width() > 0 ? tiles.width() : side};
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

SlideGrid TileGrid(const image::PictureSize& picture,
                   const image::PictureSize& tile, float overlap) {
  // The product is rounded to a float. An overlap of 0.7 and a side of 10
  // pixels therefore give 7, although the float 0.7f is slightly below 0.7.
  const auto step = [overlap](int side) {
    return side - static_cast<int>(overlap * side);
  };
  return SlideGrid(picture, tile, {step(tile.height), step(tile.width)});
}

absl::Status DivideIntoTiles(const v1::Tiles& tiles,
                             const model::ModelConfig& model, int most,
                             ImageFacts* image) {
  if (tiles.max_tiles() > 0) most = std::min(most, tiles.max_tiles());
  const float overlap = OverlapOf(tiles);
  const auto images = [&](const image::PictureSize& tile) {
    const int64_t count = TileGrid(image->seen, tile, overlap).windows();
    return count == 1 || tiles.without_picture() ? count : count + 1;
  };
  // A larger tile never gives more parts, and a tile of the picture's size
  // gives one part. A binary search therefore finds the smallest side that
  // fits.
  int side = InputSide(model);
  int fitting = std::max({side, image->seen.width, image->seen.height});
  while (side < fitting) {
    const int middle = side + (fitting - side) / 2;
    if (images(TileSize(tiles, middle)) > most) {
      side = middle + 1;
    } else {
      fitting = middle;
    }
  }
  image::PictureSize tile = TileSize(tiles, side);
  const int64_t needed = images(tile);
  if (needed > most) {
    // Enlarges the tile until there are not too many parts, for the error
    // message. The loop ends, because a tile of the picture's size always fits.
    // A side is never reduced.
    const auto grow = [](int side, int picture) {
      return std::max(side, std::min(side + side / 8 + 1, picture));
    };
    while (images(tile) > most) {
      tile.width = grow(tile.width, image->seen.width);
      tile.height = grow(tile.height, image->seen.height);
    }
    return server::TooManyTiles(needed, most, tile.width, tile.height);
  }
  const SlideGrid grid = TileGrid(image->seen, tile, overlap);
  for (int64_t i = 0; i < grid.windows(); ++i) {
    image->parts.push_back(PartOf(model, grid.Region(i)));
  }
  if (needed > static_cast<int64_t>(image->parts.size())) {
    image->parts.push_back(
        PartOf(model, {0, 0, image->seen.width, image->seen.height}));
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::prediction
