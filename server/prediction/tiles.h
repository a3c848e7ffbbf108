#ifndef SFMAMBA_SERVER_PREDICTION_TILES_H_
#define SFMAMBA_SERVER_PREDICTION_TILES_H_

#include "absl/status/status.h"
#include "model/config.h"
#include "server/image/image.h"
#include "server/prediction/request_validation.h"
#include "server/prediction/sliding/slide_grid.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// This file divides pictures into overlapping tiles, as SAHI's
// get_slice_bboxes() does. Source: github.com/obss/sahi, "slicing.py".

// Returns INVALID_ARGUMENT unless the parameters are in their ranges.
absl::Status ValidateTiles(const v1::Tiles& tiles);

// Returns the grid of tiles of size `tile` over a picture. Neighbouring tiles
// share the fraction `overlap` of their side. `overlap` must be from 0 to 0.9.
// The number of shared pixels is rounded down.
SlideGrid TileGrid(const image::PictureSize& picture,
                   const image::PictureSize& tile, float overlap);

// Divides `image` into tiles, which become its parts. The whole picture becomes
// an additional last part, unless there is only one tile or the request sets
// `without_picture`. The number of parts must not exceed `most`. If the request
// sets `max_tiles`, the number of parts must not exceed `max_tiles` either.
//
// The request need not set the tile's width or height. The function gives the
// unset sides the smallest length that does not give too many parts. This
// length is at least the side of the model's input. If there are still too many
// parts, returns INVALID_ARGUMENT with reason TOO_MANY_TILES.
absl::Status DivideIntoTiles(const v1::Tiles& tiles,
                             const model::ModelConfig& model, int most,
                             ImageFacts* image);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_TILES_H_
