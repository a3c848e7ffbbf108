#ifndef SFMAMBA_CLIENT_PICTURE_RESIZE_H_
#define SFMAMBA_CLIENT_PICTURE_RESIZE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// Decodes a picture like ReadPicture() and resizes it for a classifier. The
// server then has nothing to decode and receives the same number of bytes for
// every picture. The result is a UINT8 tensor. It contains, bit for bit, the
// pixels that the server would compute from `bytes` (docs/network.md,
// "Preprocessing"), if client and server use the same codecs.
//
//   const auto model = client.GetModel("photographs", absl::Seconds(5));
//   *request.add_images() = *ResizeFor(*model, jpeg);
//
// Returns FAILED_PRECONDITION unless `model`, as returned by GetModel(), is a
// READY classifier. Returns INVALID_ARGUMENT if the bytes are not a picture.
absl::StatusOr<v1::Image> ResizeFor(const v1::Model& model,
                                    absl::string_view bytes);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_RESIZE_H_
