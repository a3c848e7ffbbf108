#ifndef SFMAMBA_TESTS_SERVER_RPC_PORT_CHANNELZ_FIXTURE_H_
#define SFMAMBA_TESTS_SERVER_RPC_PORT_CHANNELZ_FIXTURE_H_

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "server/rpc/port/channelz.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Answers each Check() with its peer known, and Watch() once it is cancelled.
class PeerService final : public Health::CallbackService {
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

// A server of gRPC and its clients.
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
  PeerService service_;
  std::unique_ptr<grpc::Server> server_;
  Channelz channelz_{absl::InfiniteDuration()};
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_TESTS_SERVER_RPC_PORT_CHANNELZ_FIXTURE_H_
