#ifndef SFMAMBA_SERVER_PREDICTION_TILES_H_
#define SFMAMBA_SERVER_PREDICTION_TILES_H_

#include "absl/status/status.h"
#include "model/config.h"
#include "server/image/image.h"
#include "server/prediction/request_validation.h"
#include "server/prediction/sliding/slide_grid.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// Cutting a picture into overlapping tiles, as SAHI's get_slice_bboxes() does.
// Source: github.com/obss/sahi, "slicing.py".

// INVALID_ARGUMENT unless the parameters are in their ranges.
absl::Status ValidateTiles(const v1::Tiles& tiles);

// The tiles of size `tile` of a picture. `overlap`, 0..0.9, is a fraction of
// the tile's side, rounded down to pixels.
SlideGrid TileGrid(const image::PictureSize& picture,
                   const image::PictureSize& tile, float overlap);

// Makes the tiles the parts of `image`, and the whole picture the last one
// unless there is one tile or it is not wanted. A side that the request leaves
// unset becomes the smallest, but at least the model's input size, with which
// there are at most `most` parts and at most the request's `max_tiles`.
// INVALID_ARGUMENT with reason TOO_MANY_TILES if the sides that the request
// sets give more.
absl::Status DivideIntoTiles(const v1::Tiles& tiles,
                             const model::ModelConfig& model, int most,
                             ImageFacts* image);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_TILES_H_
