#ifndef SFMAMBA_BASE_PROTO_DURATION_H_
#define SFMAMBA_BASE_PROTO_DURATION_H_

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"

namespace sfmamba::base {

void ToProto(absl::Duration duration, google::protobuf::Duration* proto);

// Accepts every valid protobuf Duration. Durations outside the valid range
// saturate.
absl::Duration FromProto(const google::protobuf::Duration& proto);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_PROTO_DURATION_H_
