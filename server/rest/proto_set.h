#ifndef SFMAMBA_SERVER_REST_PROTO_SET_H_
#define SFMAMBA_SERVER_REST_PROTO_SET_H_

#include "absl/strings/string_view.h"

namespace sfmamba::rest {

// A google.protobuf.FileDescriptorSet of vision.proto and all that it imports,
// with the comments; protoc and embed_protos.py write it into the program.
absl::string_view ProtoSet();

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_PROTO_SET_H_
