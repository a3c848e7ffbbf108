#include "server/rpc/port/channelz.h"

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/server/rpc/port/channelz_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

TEST(ChannelzCallsTest, ThatEndedBetweenTheCountsAreNotOpen) {
  EXPECT_EQ((Channelz::Calls{3, 1, 1}.open()), 1);
  EXPECT_EQ((Channelz::Calls{1, 1, 1}.open()), 0);
}

TEST_F(ChannelzTest, CallsAreCountedByConnection) {
  const auto first = NewConnection(), second = NewConnection();
  const int64_t id = Check(*first);
  EXPECT_GT(id, 0);
  EXPECT_EQ(Check(*first), id);
  const int64_t other = Check(*second);
  EXPECT_GT(other, 0);
  EXPECT_NE(other, id);
  Await(id, 2, 2, 0);
  grpc::ClientContext context;
  const auto watch = second->Watch(&context, HealthCheckRequest());
  Await(other, 2, 1, 0);
  EXPECT_EQ(Channelz::CallsOf(other).open(), 1);
  context.TryCancel();
  watch->Finish();
  Await(other, 2, 1, 1);
  EXPECT_EQ(Channelz::CallsOf(other).open(), 0);
  EXPECT_EQ(channelz_.IdOf("ipv4:127.0.0.1:1"), 0);
  EXPECT_EQ(Channelz::CallsOf(0).begun, 0);
}

TEST_F(ChannelzTest, AConnectionThatHasGoneIsForgottenOnceAnIntervalIsOver) {
  Channelz channelz(absl::ZeroDuration());
  auto stub = NewConnection();
  Check(*stub);
  const std::string peer = service_.peer();
  const int64_t id = channelz.IdOf(peer);
  EXPECT_GT(id, 0);
  EXPECT_EQ(channelz.IdOf("ipv4:127.0.0.1:1"), 0);  // All are listed again.
  EXPECT_EQ(channelz.IdOf(peer), id);
  EXPECT_EQ(channelz_.IdOf("ipv4:127.0.0.1:1"), 0);
  stub.reset();
  WaitUntil(
      [&] {
        channelz.IdOf("ipv4:127.0.0.1:1");
        return channelz.IdOf(peer) == 0;
      },
      "the end of the connection");
  // The interval of this one is never over.
  EXPECT_EQ(channelz_.IdOf("ipv4:127.0.0.1:1"), 0);
  EXPECT_EQ(channelz_.IdOf(peer), id);
}

}  // namespace
}  // namespace sfmamba::rpc
