#include "server/rpc/health.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "grpcpp/test/default_reactor_test_peer.h"
#include "gtest/gtest.h"
#include "server/rpc/call.h"

namespace sfmamba::rpc {
namespace {

using grpc::StatusCode;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using Statuses = std::vector<HealthCheckResponse::ServingStatus>;

constexpr auto kServing = HealthCheckResponse::SERVING;
constexpr auto kNotServing = HealthCheckResponse::NOT_SERVING;
constexpr auto kUnknown = HealthCheckResponse::SERVICE_UNKNOWN;
constexpr int kMaxWatches = 3;

grpc::ByteBuffer BytesOf(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

// Returns a request for the health of `name`.
grpc::ByteBuffer RequestFor(const std::string& name) {
  HealthCheckRequest request;
  request.set_service(name);
  return BytesOf(request.SerializeAsString());
}

HealthCheckResponse::ServingStatus StatusIn(const grpc::ByteBuffer& bytes) {
  HealthCheckResponse response;
  EXPECT_TRUE(Parse(bytes, &response).ok());
  return response.status();
}

// A Watch call without a network. The test takes the part of gRPC and says when
// a write is finished. The call must have ended before this object is
// destroyed.
class WatchCall {
 public:
  WatchCall(HealthService& service, const std::string& name)
      : WatchCall(service, RequestFor(name)) {}
  WatchCall(HealthService& service, const grpc::ByteBuffer& request) {
    reactor_ = service.Watch(&context_, &request);
    grpc_side_ = std::make_unique<GrpcSide>(reactor_);
  }
  ~WatchCall() {
    EXPECT_TRUE(has_ended());
    reactor_->OnDone();
  }

  // Returns the statuses sent so far. The last one may not be completely
  // written yet.
  const Statuses& told() const { return grpc_side_->told; }
  void WriteDone(bool ok = true) {
    ASSERT_NE(grpc_side_->message, nullptr) << "nothing is being written";
    EXPECT_EQ(StatusIn(*grpc_side_->message), told().back())
        << "the message changed while it was written";
    grpc_side_->message = nullptr;
    reactor_->OnWriteDone(ok);
  }
  void Cancel() { reactor_->OnCancel(); }
  bool has_ended() const { return grpc_side_->endings == 1; }
  StatusCode code() const { return grpc_side_->status.error_code(); }

 private:
  class GrpcSide final : public grpc::ServerCallbackWriter<grpc::ByteBuffer> {
   public:
    explicit GrpcSide(grpc::ServerWriteReactor<grpc::ByteBuffer>* reactor)
        : reactor_(reactor) {
      BindReactor(reactor);
    }
    void Write(const grpc::ByteBuffer* response, grpc::WriteOptions) override {
      EXPECT_EQ(message, nullptr) << "two writes at a time";
      EXPECT_EQ(endings, 0) << "a write after the end";
      message = response;
      told.push_back(StatusIn(*response));
    }
    void Finish(grpc::Status s) override {
      EXPECT_EQ(message, nullptr) << "it ends during a write";
      status = std::move(s);
      ++endings;
    }
    void WriteAndFinish(const grpc::ByteBuffer*, grpc::WriteOptions,
                        grpc::Status) override {
      ADD_FAILURE();
    }
    void SendInitialMetadata() override {}

    Statuses told;
    // The message that is being written, or null.
    const grpc::ByteBuffer* message = nullptr;
    grpc::Status status;
    int endings = 0;

   private:
    grpc::internal::ServerReactor* reactor() override { return reactor_; }
    void CallOnDone() override {}

    grpc::ServerWriteReactor<grpc::ByteBuffer>* const reactor_;
  };

  grpc::CallbackServerContext context_;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* reactor_;
  std::unique_ptr<GrpcSide> grpc_side_;
};

class HealthTest : public testing::Test {
 protected:
  // Returns Check's answer for `name`. Returns kUnknown if Check fails with
  // NOT_FOUND.
  HealthCheckResponse::ServingStatus Check(const std::string& name) {
    grpc::CallbackServerContext context;
    grpc::testing::DefaultReactorTestPeer call(&context);
    const grpc::ByteBuffer request = RequestFor(name);
    grpc::ByteBuffer response;
    service_.Check(&context, &request, &response);
    EXPECT_TRUE(call.test_status_set());
    if (call.test_status().error_code() == StatusCode::NOT_FOUND) {
      EXPECT_EQ(call.test_status().error_message(),
                "service: got \"" + name +
                    "\", expected none, \"liveness\", or a service or a model "
                    "of this server");
      return kUnknown;
    }
    EXPECT_TRUE(call.test_status().ok());
    return StatusIn(response);
  }

  bool alive_ = true;
  HealthService service_{[this] { return alive_; }, kMaxWatches};
};

TEST_F(HealthTest, CheckTellsWhatWasSet) {
  EXPECT_EQ(Check("m"), kUnknown);
  service_.SetServing("m", true);
  service_.SetServing("other", false);
  EXPECT_EQ(Check("m"), kServing);
  EXPECT_EQ(Check("other"), kNotServing);
  service_.SetServing("other", true);
  service_.SetNoneServing();
  EXPECT_EQ(Check("m"), kNotServing);
  EXPECT_EQ(Check("other"), kNotServing);
  EXPECT_EQ(Check("liveness"), kServing);
  service_.SetServing("m", true);
  EXPECT_EQ(Check("m"), kServing);
}

TEST_F(HealthTest, OnlyWhatWasSaidToServeIsServing) {
  service_.SetServing("m", true);
  service_.SetServing("other", false);
  EXPECT_TRUE(service_.IsServing("m"));
  EXPECT_FALSE(service_.IsServing("other"));
  EXPECT_FALSE(service_.IsServing("unknown"));
}

TEST_F(HealthTest, LivenessFollowsTheFunction) {
  EXPECT_EQ(Check("liveness"), kServing);
  alive_ = false;
  EXPECT_EQ(Check("liveness"), kNotServing);
}

TEST_F(HealthTest, AfterFailNothingIsServingAgain) {
  service_.SetServing("m", true);
  service_.Fail();
  service_.SetServing("m", true);
  service_.SetServing("new", true);
  for (const char* name : {"m", "new", "liveness"}) {
    EXPECT_EQ(Check(name), kNotServing) << name;
    EXPECT_FALSE(service_.IsServing(name)) << name;
  }
  EXPECT_EQ(Check("other"), kUnknown);
}

TEST_F(HealthTest, AWatchIsToldWhatIsAndEachChangeOfItsName) {
  WatchCall watch(service_, "m"), liveness(service_, "liveness");
  EXPECT_EQ(watch.told(), Statuses({kUnknown}));
  EXPECT_EQ(liveness.told(), Statuses({kServing}));
  watch.WriteDone();
  liveness.WriteDone();
  service_.SetServing("other", true);
  EXPECT_EQ(watch.told().size(), 1);
  service_.SetServing("m", true);
  EXPECT_EQ(watch.told(), Statuses({kUnknown, kServing}));
  watch.WriteDone();
  service_.SetServing("m", true);
  EXPECT_EQ(watch.told().size(), 2) << "nothing has changed";
  service_.SetNoneServing();
  EXPECT_EQ(watch.told(), Statuses({kUnknown, kServing, kNotServing}));
  watch.WriteDone();
  service_.SetServing("m", true);
  watch.WriteDone();
  service_.Fail();
  EXPECT_EQ(watch.told(),
            Statuses({kUnknown, kServing, kNotServing, kServing, kNotServing}));
  EXPECT_EQ(liveness.told(), Statuses({kServing, kNotServing}));
  watch.WriteDone();
  liveness.WriteDone();
  service_.EndWatches();
}

TEST_F(HealthTest, AWatchOfLivenessIsToldWhenItIsUpdated) {
  WatchCall liveness(service_, "liveness"), other(service_, "m");
  liveness.WriteDone();
  other.WriteDone();
  service_.UpdateLiveness();
  EXPECT_EQ(liveness.told(), Statuses({kServing})) << "nothing has changed";
  alive_ = false;
  service_.UpdateLiveness();
  EXPECT_EQ(liveness.told(), Statuses({kServing, kNotServing}));
  liveness.WriteDone();
  alive_ = true;
  service_.UpdateLiveness();
  EXPECT_EQ(liveness.told(), Statuses({kServing, kNotServing, kServing}));
  liveness.WriteDone();
  EXPECT_EQ(other.told(), Statuses({kUnknown}));
  service_.EndWatches();
}

TEST_F(HealthTest, OfTwoChangesDuringAWriteTheLatestIsTold) {
  service_.SetServing("m", false);
  WatchCall watch(service_, "m");
  service_.SetServing("m", true);
  service_.SetServing("m", false);
  EXPECT_EQ(watch.told().size(), 1) << "the first is still being written";
  watch.WriteDone();
  EXPECT_EQ(watch.told().size(), 1) << "it is as it was told";
  service_.SetServing("m", true);
  service_.SetServing("m", false);
  watch.WriteDone();
  EXPECT_EQ(watch.told(), Statuses({kNotServing, kServing, kNotServing}));
  watch.WriteDone();
  service_.EndWatches();
}

TEST_F(HealthTest, EndWatchesEndsEachOnceItsWriteIsDone) {
  WatchCall idle(service_, "m"), writing(service_, "m");
  idle.WriteDone();
  service_.EndWatches();
  EXPECT_TRUE(idle.has_ended());
  EXPECT_EQ(idle.code(), StatusCode::UNAVAILABLE);
  EXPECT_FALSE(writing.has_ended());
  writing.WriteDone();
  EXPECT_TRUE(writing.has_ended());
  EXPECT_EQ(writing.code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(writing.told(), Statuses({kUnknown}));
  service_.EndWatches();
}

TEST_F(HealthTest, AChangeDuringAWriteIsToldBeforeTheEnd) {
  service_.SetServing("m", true);
  WatchCall call(service_, "m");
  service_.SetNoneServing();
  service_.EndWatches();
  call.WriteDone();
  EXPECT_EQ(call.told(), Statuses({kServing, kNotServing}));
  EXPECT_FALSE(call.has_ended());
  call.WriteDone();
  EXPECT_TRUE(call.has_ended());
  EXPECT_EQ(call.code(), StatusCode::UNAVAILABLE);
}

TEST_F(HealthTest, AWatchAfterEndWatchesEndsAtOnce) {
  service_.SetServing("m", true);
  service_.EndWatches();
  WatchCall watch(service_, "m");
  EXPECT_TRUE(watch.has_ended());
  EXPECT_EQ(watch.code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(watch.told().empty());
  EXPECT_EQ(Check("m"), kServing);
}

TEST_F(HealthTest, OfTooManyWatchesTheOldestGivesWay) {
  std::vector<std::unique_ptr<WatchCall>> watches;
  for (int i = 0; i < kMaxWatches + 2; ++i) {
    watches.push_back(std::make_unique<WatchCall>(service_, "m"));
    watches.back()->WriteDone();
    for (int k = 0; k <= i; ++k) {
      EXPECT_EQ(watches[k]->has_ended(), k <= i - kMaxWatches) << k;
    }
  }
  EXPECT_EQ(watches[0]->code(), StatusCode::RESOURCE_EXHAUSTED);
  // One of the watches ends, so there is room for one more.
  watches.back()->Cancel();
  watches.pop_back();
  WatchCall watch(service_, "m");
  watch.WriteDone();
  EXPECT_FALSE(watches[2]->has_ended());
  service_.EndWatches();
}

TEST_F(HealthTest, TheLongestNameIsRead) {
  EXPECT_EQ(Check(std::string(256, 'x')), kUnknown);
}

// The requests contain a name that is too long, a text that is longer than the
// message, a text that is not UTF-8, and more bytes than any request has.
TEST_F(HealthTest, WhatIsNoRequestIsRefused) {
  for (const grpc::ByteBuffer& request :
       {RequestFor(std::string(257, 'x')), BytesOf("\x0a\x05x"),
        BytesOf("\x0a\x01\xff"), BytesOf(std::string(1 << 20, '\x08'))}) {
    WatchCall watch(service_, request);
    EXPECT_EQ(watch.code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(watch.told(), Statuses{});
    grpc::CallbackServerContext context;
    grpc::testing::DefaultReactorTestPeer call(&context);
    grpc::ByteBuffer response;
    service_.Check(&context, &request, &response);
    EXPECT_EQ(call.test_status().error_code(), StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(HealthTest, AWatcherThatLeavesIsForgotten) {
  {
    WatchCall cancelled(service_, "m"), broken(service_, "m");
    cancelled.Cancel();
    EXPECT_FALSE(cancelled.has_ended());
    cancelled.WriteDone(false);
    cancelled.Cancel();
    broken.WriteDone(false);
    EXPECT_EQ(cancelled.code(), StatusCode::CANCELLED);
    EXPECT_EQ(broken.code(), StatusCode::CANCELLED);
  }
  service_.SetServing("m", true);
  service_.EndWatches();
}

}  // namespace
}  // namespace sfmamba::rpc
