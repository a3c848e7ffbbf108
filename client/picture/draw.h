#ifndef SFMAMBA_CLIENT_PICTURE_DRAW_H_
#define SFMAMBA_CLIENT_PICTURE_DRAW_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "client/picture/picture.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// All drawings take the picture that the answer is about, as ReadPicture()
// returns it. An answer that is malformed or about a picture of another size is
// DATA_LOSS. The same input gives the same pixels.

// R, G, B of a class; different for any two of the first 65536.
std::array<uint8_t, 3> ClassColor(int class_id);

// Each object in its class's colour: half-transparent mask with its outline,
// box, and a label with the score, and with what its crop shows if it has one,
// inside the picture where that has room.
absl::StatusOr<Picture> DrawDetections(const Picture& picture,
                                       const v1::DetectResult& result);

// The heat map, a PNG of the picture's size, over the picture: the more a place
// adds to the class, the redder and the less transparent. The class stands in
// the corner, with its score if it is among the categories.
absl::StatusOr<Picture> DrawHeatMap(const Picture& picture,
                                    const v1::ClassifyResult& result);

// Each class in its colour, half-transparent, over the picture, and below it
// (beside it if it is upright) a legend of the classes there, largest first,
// with their shares of the picture; labels come from the result's areas.
// A class labelled "background" leaves the picture as it is.
absl::StatusOr<Picture> DrawSegmentation(const Picture& picture,
                                         const v1::SegmentResult& result);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_DRAW_H_
