#include "server/rpc/grpc_threads.h"

#include <functional>
#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

// Calls that are refused at once: one of gRPC's threads tells of each.
class Refused {
 public:
  explicit Refused(std::function<void()> callback)
      : stub_(grpc::CreateChannel("", nullptr)) {
    stub_.UnaryCall(
        &context_, "/none/None", grpc::StubOptions(), &request_, &response_,
        [this, callback = std::move(callback)](const grpc::Status& status) {
          EXPECT_FALSE(status.ok());
          callback();
          ended_.Notify();
        });
  }
  ~Refused() { WaitFor(ended_, "a callback"); }

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  const grpc::Slice none_;
  const grpc::ByteBuffer request_{&none_, 1};
  grpc::ByteBuffer response_;
  absl::Notification ended_;
};

// One of gRPC's threads is busy while this lives.
class Busy {
 public:
  Busy()
      : refused_([this] {
          runs_.Notify();
          may_end_.WaitForNotification();
        }) {
    runs_.WaitForNotification();
  }
  ~Busy() { may_end_.Notify(); }

 private:
  absl::Notification runs_, may_end_;
  Refused refused_;  // Last: it uses the others.
};

void RunACallback() {
  Refused callback([] {});
}

TEST(GrpcThreadsTest, CallbacksRunByNoMoreThreadsThanAreUsed) {
  const GrpcThreads threads({1, absl::Hours(1)});
  EXPECT_GE(threads.kept_out(), 1);
  std::optional<Busy> busy(std::in_place);
  absl::Notification ran;
  Refused callback([&ran] { ran.Notify(); });
  EXPECT_FALSE(ran.WaitForNotificationWithTimeout(absl::Milliseconds(100)));
  busy.reset();
  WaitFor(ran, "a callback");
}

TEST(GrpcThreadsTest, AllRunThemOnceItIsGone) {
  { const GrpcThreads threads({1, absl::Hours(1)}); }
  const Busy busy;
  RunACallback();
}

TEST(GrpcThreadsTest, OthersAreLetInWhileCallbacksDoNotRun) {
  const GrpcThreads threads({1, absl::Milliseconds(5), absl::Milliseconds(50)});
  const int kept_out = threads.kept_out();
  ASSERT_GE(kept_out, 1);
  for (int i = 0; i < 3; ++i) {
    {
      const Busy busy;
      RunACallback();
    }
    WaitUntil([&] { return threads.kept_out() == kept_out; },
              "those that were let in to be kept out again");
  }
}

// No other channel is there, so that gRPC's threads end with each of them.
TEST(GrpcThreadsTest, EndsWhileCallbacksAreOnTheirWay) {
  const TimeLimit limit("the ends of gRPC's threads");
  for (int i = 0; i < 50; ++i) {
    const GrpcThreads threads({1, absl::Microseconds(100)});
    absl::SleepFor(absl::Microseconds(50 * i));
  }
}

TEST(GrpcThreadsTest, KeepsNoneOutWhereAllAreUsed) {
  const GrpcThreads threads({1000});
  EXPECT_EQ(threads.kept_out(), 0);
  const Busy busy;
  RunACallback();
}

TEST(GrpcThreadsTest, AQuarterOfTheProcessorsIsEnough) {
  EXPECT_EQ(GrpcThreads::Enough(1), 1);
  EXPECT_EQ(GrpcThreads::Enough(2), 1);
  EXPECT_EQ(GrpcThreads::Enough(7), 1);
  EXPECT_EQ(GrpcThreads::Enough(16), 4);
}

}  // namespace
}  // namespace sfmamba::rpc
