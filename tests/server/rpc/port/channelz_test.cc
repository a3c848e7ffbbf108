#include "server/rpc/port/channelz.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Answers each Check() with its peer known, and Watch() once it is cancelled.
class Service final : public Health::CallbackService {
 public:
  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const HealthCheckRequest*,
                                  HealthCheckResponse*) override {
    absl::MutexLock lock(&mu_);
    peer_ = context->peer();
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerWriteReactor<HealthCheckResponse>* Watch(
      grpc::CallbackServerContext*, const HealthCheckRequest*) override {
    class Watcher final : public grpc::ServerWriteReactor<HealthCheckResponse> {
      void OnCancel() override { Finish(grpc::Status::CANCELLED); }
      void OnDone() override { delete this; }
    };
    return new Watcher;
  }
  std::string peer() {
    absl::MutexLock lock(&mu_);
    return peer_;
  }

 private:
  absl::Mutex mu_;
  std::string peer_ ABSL_GUARDED_BY(mu_);
};

class ChannelzTest : public testing::Test {
 protected:
  ChannelzTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }

  std::unique_ptr<Health::Stub> NewConnection() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return Health::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", port_), grpc::InsecureChannelCredentials(),
        arguments));
  }
  // Returns the connection's number once a call over it is answered.
  int64_t Check(Health::Stub& stub) {
    grpc::ClientContext context;
    HealthCheckResponse response;
    EXPECT_TRUE(stub.Check(&context, {}, &response).ok());
    return channelz_.IdOf(service_.peer());
  }
  static void Await(int64_t id, int begun, int answered, int failed) {
    WaitUntil(
        [=] {
          const Channelz::Calls calls = Channelz::CallsOf(id);
          return calls.begun == begun && calls.answered == answered &&
                 calls.failed == failed;
        },
        absl::StrCat(begun, " calls, ", answered, " answered, ", failed,
                     " failed"));
  }

  int port_ = 0;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  Channelz channelz_{absl::InfiniteDuration()};
};

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

TEST_F(ChannelzTest, AConnectionThatHasGoneIsForgotten) {
  Channelz channelz(absl::ZeroDuration());
  auto stub = NewConnection();
  Check(*stub);
  const std::string peer = service_.peer();
  EXPECT_GT(channelz.IdOf(peer), 0);
  stub.reset();
  WaitUntil(
      [&] {
        channelz.IdOf("ipv4:127.0.0.1:1");  // All are listed again.
        return channelz.IdOf(peer) == 0;
      },
      "the end of the connection");
}

}  // namespace
}  // namespace sfmamba::rpc
