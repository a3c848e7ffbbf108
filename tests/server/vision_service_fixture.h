#ifndef SFMAMBA_TESTS_SERVER_VISION_SERVICE_FIXTURE_H_
#define SFMAMBA_TESTS_SERVER_VISION_SERVICE_FIXTURE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/server/running_server.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {

// Each overload of Send() calls the stub's method for one type of request.
inline void Send(v1::VisionService::Stub& stub, grpc::ClientContext* context,
                 const v1::ClassifyRequest* request,
                 v1::ClassifyResponse* response,
                 std::function<void(grpc::Status)> done) {
  stub.async()->Classify(context, request, response, std::move(done));
}
inline void Send(v1::VisionService::Stub& stub, grpc::ClientContext* context,
                 const v1::DetectRequest* request, v1::DetectResponse* response,
                 std::function<void(grpc::Status)> done) {
  stub.async()->Detect(context, request, response, std::move(done));
}
inline void Send(v1::VisionService::Stub& stub, grpc::ClientContext* context,
                 const v1::SegmentRequest* request,
                 v1::SegmentResponse* response,
                 std::function<void(grpc::Status)> done) {
  stub.async()->Segment(context, request, response, std::move(done));
}

// A call in progress. The test must wait for it.
template <typename Request, typename Response>
class CallUnderWay {
 public:
  CallUnderWay(RunningServer& server, Request request)
      : request_(std::move(request)) {
    Send(server.stub(), &context_, &request_, &response_,
         [this](grpc::Status status) {
           status_ = std::move(status);
           done_.Notify();
         });
  }

  Ending Wait() {
    WaitFor(done_, "the end of the call");
    return EndingOf(status_, &context_);
  }
  void Cancel() { context_.TryCancel(); }
  const Response& response() const { return response_; }

 private:
  grpc::ClientContext context_;
  const Request request_;
  Response response_;
  grpc::Status status_;
  absl::Notification done_;
};
using Call = CallUnderWay<v1::ClassifyRequest, v1::ClassifyResponse>;

class VisionServiceTest : public testing::Test {
 protected:
  VisionServiceTest() : repository_(NewFolder("models")) {}

  // Writes version 3 of the model "fake" and starts a server. The server also
  // has the models that the test has written before.
  void Start(const std::string& batching = "",
             v1::ServerConfig config = v1::ServerConfig(), bool load = true,
             model::VisionTask task = model::VisionTask::kClassification) {
    WriteModel(repository_, "fake", "3", batching, task);
    config.set_model_repository(repository_);
    server_ = std::make_unique<RunningServer>(config, load);
  }

  template <typename Request, typename Response>
  Ending Run(const Request& request, Response* response) {
    CallUnderWay<Request, Response> call(*server_, request);
    const Ending ending = call.Wait();
    if (response != nullptr) *response = call.response();
    return ending;
  }
  Ending Classify(const v1::ClassifyRequest& request,
                  v1::ClassifyResponse* response = nullptr) {
    return Run(request, response);
  }
  Ending Detect(const v1::DetectRequest& request,
                v1::DetectResponse* response = nullptr) {
    return Run(request, response);
  }
  Ending Segment(const v1::SegmentRequest& request,
                 v1::SegmentResponse* response = nullptr) {
    return Run(request, response);
  }

  // Returns the result of a request with one image, which must succeed.
  v1::DetectResult DetectOne(const v1::DetectRequest& request) {
    return One<v1::DetectResponse, v1::DetectResult>(request);
  }
  v1::SegmentResult SegmentOne(const v1::SegmentRequest& request) {
    return One<v1::SegmentResponse, v1::SegmentResult>(request);
  }

  // Expects that a valid request succeeds and that every response to it has the
  // same bytes.
  void ExpectAlive() {
    v1::ClassifyResponse response;
    ASSERT_EQ(Classify(GreyRequest(100), &response).code, grpc::StatusCode::OK);
    if (expected_.empty()) expected_ = response.SerializeAsString();
    EXPECT_EQ(response.SerializeAsString(), expected_);
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  const std::string repository_;
  std::unique_ptr<RunningServer> server_;
  std::string expected_;

 private:
  template <typename Response, typename Answer, typename Request>
  Answer One(const Request& request) {
    Response response;
    const Ending ending = Run(request, &response);
    EXPECT_EQ(ending.code, grpc::StatusCode::OK) << ending.message;
    if (response.results_size() == 1) return response.results(0);
    ADD_FAILURE() << response.results_size() << " results";
    return Answer();
  }
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_TESTS_SERVER_VISION_SERVICE_FIXTURE_H_
