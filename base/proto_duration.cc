#include "base/proto_duration.h"

namespace sfmamba::base {

void ToProto(absl::Duration duration, google::protobuf::Duration* proto) {
  proto->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  proto->set_nanos(
      absl::IDivDuration(duration, absl::Nanoseconds(1), &duration));
}

absl::Duration FromProto(const google::protobuf::Duration& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

}  // namespace sfmamba::base
