#include "base/proto_duration.h"

#include "gtest/gtest.h"

namespace sfmamba::base {
namespace {

TEST(ProtoDurationTest, ConvertsBothWays) {
  google::protobuf::Duration proto;
  ToProto(absl::Nanoseconds(2'500'000'001), &proto);
  EXPECT_EQ(proto.seconds(), 2);
  EXPECT_EQ(proto.nanos(), 500'000'001);
  EXPECT_EQ(FromProto(proto), absl::Nanoseconds(2'500'000'001));
}

}  // namespace
}  // namespace sfmamba::base
