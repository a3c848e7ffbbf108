#ifndef SFMAMBA_SERVER_PREDICTION_TILES_H_
#define SFMAMBA_SERVER_PREDICTION_TILES_H_

#include "absl/status/status.h"
#include "model/config.h"
#include "server/image/image.h"
#include "server/prediction/request_validation.h"
#include "server/prediction/sliding/slide_grid.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// Overlapping tiles of a picture, as in SAHI's get_slice_bboxes(). Source:
// github.com/obss/sahi, "slicing.py".

// Returns INVALID_ARGUMENT unless the parameters are in their ranges.
absl::Status ValidateTiles(const v1::Tiles& tiles);

// Returns the grid of tiles of size `tile` over a picture. `overlap` is the
// shared fraction of a tile's side, from 0 to 0.9. The overlap is rounded down
// to pixels.
SlideGrid TileGrid(const image::PictureSize& picture,
                   const image::PictureSize& tile, float overlap);

// Divides `image` into tiles, which become its parts. The whole picture becomes
// an additional last part, unless there is only one tile or the request sets
// `without_picture`. There may be at most `most` parts, and at most `max_tiles`
// if the request sets it.
//
// The request may leave the tile's width or height open. The missing sides then
// get the smallest length with which there are not too many parts. This length
// is at least the model's input size. If the request's sides give too many
// parts, returns INVALID_ARGUMENT with reason TOO_MANY_TILES.
absl::Status DivideIntoTiles(const v1::Tiles& tiles,
                             const model::ModelConfig& model, int most,
                             ImageFacts* image);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_TILES_H_
