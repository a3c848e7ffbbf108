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
  // The product must be a float and not a double. For example, the overlap is
  // 0.7f and the side is 10 pixels. 0.7f is slightly less than 0.7, so the
  // exact product is slightly less than 7. However, the float multiplication
  // gives 7, because 7 is the nearest float. The cast then gives 7 and not 6.
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
  // A larger tile never gives more parts than a smaller tile. A tile of the
  // picture's size gives one part. A binary search therefore finds the smallest
  // `side`, from InputSide() upwards, that gives at most `most` parts. If the
  // request sets the tile's width or height, only the unset one is searched. In
  // this case, even the largest `side` may give more than `most` parts.
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
    // The error message suggests a tile size. To find this size, the loop below
    // enlarges the tile until there are at most `most` parts. The loop ends,
    // because a tile of the picture's size gives only one part. A side that is
    // larger than the picture is not reduced.
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
