#ifndef SFMAMBA_CLIENT_PICTURE_DRAW_H_
#define SFMAMBA_CLIENT_PICTURE_DRAW_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "client/picture/picture.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// All drawing functions expect the picture that the answer is about, as
// returned by ReadPicture(). They return DATA_LOSS if the answer is malformed
// or is about a picture of another size. Equal input gives equal pixels.

// Returns the colour (R, G, B) of a class. The colours of the first 65536
// classes are all different.
std::array<uint8_t, 3> ClassColor(int class_id);

// Draws each object in the colour of its class. An object has a
// half-transparent mask with an outline, a box, and a label. The label shows
// the score and, if the object's crop was classified, the crop's best class.
// Labels lie inside the picture if it is large enough.
absl::StatusOr<Picture> DrawDetections(const Picture& picture,
                                       const v1::DetectResult& result);

// Draws the heat map, which has the picture's size, over the picture. Places
// that contribute more to the class are redder and less transparent. The class
// is written in the corner, with its score if the class is among the answer's
// categories.
absl::StatusOr<Picture> DrawHeatMap(const Picture& picture,
                                    const v1::ClassifyResult& result);

// Draws each class half-transparent in its colour over the picture. A legend
// lies below the picture, or beside it if the picture is higher than wide. The
// legend lists the classes in the picture, largest first, with their
// percentages. Labels come from the result's areas. Pixels of a class labelled
// "background" stay unchanged.
absl::StatusOr<Picture> DrawSegmentation(const Picture& picture,
                                         const v1::SegmentResult& result);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_DRAW_H_
