#ifndef SFMAMBA_TESTS_SERVER_VISION_SERVICE_FIXTURE_H_
#define SFMAMBA_TESTS_SERVER_VISION_SERVICE_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/server/running_server.h"

namespace sfmamba {

// A call under way. Must be waited for.
class Call {
 public:
  Call(RunningServer& server, v1::ClassifyRequest request)
      : request_(std::move(request)) {
    server.stub().async()->Classify(&context_, &request_, &response_,
                                    [this](grpc::Status status) {
                                      status_ = std::move(status);
                                      done_.Notify();
                                    });
  }

  Ending Wait() {
    done_.WaitForNotification();
    return EndingOf(status_, &context_);
  }
  void Cancel() { context_.TryCancel(); }
  const v1::ClassifyResponse& response() const { return response_; }

 private:
  grpc::ClientContext context_;
  const v1::ClassifyRequest request_;
  v1::ClassifyResponse response_;
  grpc::Status status_;
  absl::Notification done_;
};

class VisionServiceTest : public testing::Test {
 protected:
  VisionServiceTest() : repository_(NewFolder("models")) {}

  // A server of one model, "fake", version 3.
  void Start(const std::string& batching = "",
             v1::ServerConfig config = v1::ServerConfig(), bool load = true) {
    WriteModel(repository_, "fake", "3", batching);
    config.set_model_repository(repository_);
    server_ = std::make_unique<RunningServer>(config, load);
  }

  Ending Classify(const v1::ClassifyRequest& request,
                  v1::ClassifyResponse* response = nullptr) {
    Call call(*server_, request);
    const Ending ending = call.Wait();
    if (response != nullptr) *response = call.response();
    return ending;
  }

  // The server still answers a good request, with the bytes it always gives.
  void ExpectAlive() {
    v1::ClassifyResponse response;
    ASSERT_EQ(Classify(GreyRequest(100), &response).code, grpc::StatusCode::OK);
    if (expected_.empty()) expected_ = response.SerializeAsString();
    EXPECT_EQ(response.SerializeAsString(), expected_);
  }

  const std::string repository_;
  std::unique_ptr<RunningServer> server_;
  std::string expected_;
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_SERVER_VISION_SERVICE_FIXTURE_H_
