#ifndef SFMAMBA_CLIENT_PICTURE_RESIZE_H_
#define SFMAMBA_CLIENT_PICTURE_RESIZE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// Decodes a picture as ReadPicture() does and resizes it for a classifier, so
// that the server has nothing to decode and receives as much of any picture.
// The result is a UINT8 tensor of the pixels that the server would make of
// these bytes, bit for bit (docs/network.md, "Preprocessing"), where both use
// the same codecs.
//
//   const auto model = client.GetModel("photographs", absl::Seconds(5));
//   *request.add_images() = *ResizeFor(*model, jpeg);
//
// FAILED_PRECONDITION unless `model`, as GetModel() describes it, is a
// classifier that is READY; INVALID_ARGUMENT if the bytes are no picture.
absl::StatusOr<v1::Image> ResizeFor(const v1::Model& model,
                                    absl::string_view bytes);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_RESIZE_H_
