// Tests partial results, overload, deadlines and cancellation through a client.

#include <chrono>

#include "absl/time/time.h"
#include "tests/server/picture.h"
#include "tests/server/security/token_texts.h"
#include "tests/server/vision_service_fixture.h"
#include "tests/testing/certificates.h"

namespace sfmamba::rpc {
namespace {

using grpc::StatusCode;
using v1::ClassifyRequest;
using v1::ClassifyResponse;

using ClassifyCallTest = server::VisionServiceTest;

TEST_F(ClassifyCallTest, WithPartialResultsABadImageFailsAlone) {
  Start();
  ClassifyRequest request = server::GreyRequest(100);
  // The header is enough to refuse this image.
  request.add_images()->set_encoded("text");
  // The header is valid, but the pixels are missing.
  request.add_images()->set_encoded("\xff\xd8\xff\xe0");
  request.mutable_options()->set_allow_partial_results(true);
  ClassifyResponse response;
  ASSERT_EQ(Classify(request, &response).code, StatusCode::OK);
  ASSERT_EQ(response.results_size(), 3);
  EXPECT_EQ(response.results(0).categories_size(), 5);
  EXPECT_FALSE(response.results(0).has_error());
  EXPECT_EQ(response.results(1).error().code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(response.results(1).error().message().find("images[1].encoded"),
            std::string::npos);
  EXPECT_EQ(response.results(2).error().code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_items_total", {R"(outcome="error")"}, 2), 2);
}

TEST_F(ClassifyCallTest, ValidateOnlyChecksAndRunsNothing) {
  Start();
  ClassifyRequest request = server::GreyRequest(1);
  request.mutable_options()->set_validate_only(true);
  ClassifyResponse response;
  EXPECT_EQ(Classify(request, &response).code, StatusCode::OK);
  EXPECT_EQ(response.model(), "models/fake/versions/3");
  EXPECT_EQ(response.results(0).categories_size(), 0);
  request.mutable_params()->set_top_k(-1);
  EXPECT_EQ(Classify(request).field, "params.top_k");
  EXPECT_EQ(server_->WaitForSum("sfmamba_items_total", {R"(outcome="ok")"}, 0),
            0);
}

TEST_F(ClassifyCallTest, APictureThatDecodesTooSlowlyIsRefusedAndCounted) {
  v1::ServerConfig config;
  config.mutable_decode_timeout()->set_nanos(1'000'000);
  Start("", config);
  ClassifyRequest request;
  request.add_images()->set_encoded(
      server::EncodePng(server::Gradient(2000, 2000)));
  const server::Ending ending = Classify(request);
  EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ending.reason, "IMAGE_DECODE_TIMEOUT");
  EXPECT_EQ(ending.field, "images[0].encoded");
  EXPECT_EQ(server_->WaitForSum("sfmamba_image_decode_failures_total",
                                {R"(reason="IMAGE_DECODE_TIMEOUT")"}, 1),
            1);
  ExpectAlive();
}

TEST_F(ClassifyCallTest, AClientWithoutDeadlinesIsLoggedOnce) {
  Start();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Classify(server::GreyRequest(i)).code, StatusCode::OK);
  }
  const std::string log = server_->Log();
  const size_t first = log.find("sets no deadlines");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("sets no deadlines", first + 1), std::string::npos);
  EXPECT_NE(log.find("\"seconds\":30", first), std::string::npos);
}

TEST_F(ClassifyCallTest, ACallWithoutATokenIsCountedForNoModel) {
  v1::ServerConfig config;
  config.set_token_file(WriteTestFile(
      "tokens", security::ClientText("camera", "secret", "INFER")));
  Start("", config);
  EXPECT_EQ(Classify(server::GreyRequest(1)).code, StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(server_->Sum("sfmamba_requests_total",
                         {R"(code="UNAUTHENTICATED")", R"(model="")"}),
            1);
}

// ---- Overload, deadlines, cancellation ----

TEST_F(ClassifyCallTest, AFullQueueSaysWhenToComeBack) {
  Start("max_batch_size: 1 max_queue_items: 1");
  server_->gate().Close();
  server::Call running(*server_, server::GreyRequest(1));
  server_->gate().WaitForBatch();  // The queue is now empty.
  server::Call queued(*server_, server::GreyRequest(2));
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 1), 1);
  server::Call refused(*server_, server::GreyRequest(3));
  const server::Ending ending = refused.Wait();
  EXPECT_EQ(ending.code, StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ending.reason, "QUEUE_FULL");
  EXPECT_EQ(ending.metadata.at("queue"), "batch");
  EXPECT_TRUE(ending.has_retry_info);
  EXPECT_EQ(ending.pushback, "100");
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
  EXPECT_EQ(queued.Wait().code, StatusCode::OK);
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_admission_rejections_total",
                          {R"(reason="QUEUE_FULL")", R"(queue="batch")"}, 1),
      1);
  ExpectAlive();
}

TEST_F(ClassifyCallTest, MaxQueueWaitExpiresInTheQueue) {
  Start("max_batch_size: 1");
  server_->gate().Close();
  server::Call running(*server_, server::GreyRequest(1));
  server_->gate().WaitForBatch();
  ClassifyRequest request = server::GreyRequest(2);
  request.mutable_options()->mutable_max_queue_wait()->set_nanos(30'000'000);
  const server::Ending ending = Classify(request);
  EXPECT_EQ(ending.code, StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ending.reason, "EXPIRED_IN_QUEUE");
  EXPECT_EQ(ending.metadata.at("stage"), "queue");
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_items_total", {R"(outcome="expired")"}, 1),
      1);
}

TEST_F(ClassifyCallTest, TheDefaultDeadlineHoldsAfterTheModelToo) {
  Start();
  server_->gate().Close();
  server::Call call(*server_, server::GreyRequest(1));
  server_->gate().WaitForBatch();
  server_->AdvanceClock(absl::Hours(1));
  server_->gate().Open();
  const server::Ending ending = call.Wait();
  EXPECT_EQ(ending.code, StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ending.metadata.at("stage"), "postprocess");
}

TEST_F(ClassifyCallTest, AClientsDeadlineCountsAsExpired) {
  Start("max_batch_size: 1");
  server_->gate().Close();
  server::Call running(*server_, server::GreyRequest(1));
  server_->gate().WaitForBatch();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(300));
  ClassifyResponse response;
  EXPECT_EQ(server_->stub()
                .Classify(&context, server::GreyRequest(2), &response)
                .error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(server_->WaitForSum("sfmamba_requests_total",
                                {R"(code="DEADLINE_EXCEEDED")"}, 1),
            1);
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
}

TEST_F(ClassifyCallTest, CancellingInTheQueueFreesTheRoom) {
  Start("max_batch_size: 1 max_queue_items: 1");
  server_->gate().Close();
  server::Call running(*server_, server::GreyRequest(1));
  server_->gate().WaitForBatch();
  server::Call queued(*server_, server::GreyRequest(2));
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 1), 1);
  queued.Cancel();
  EXPECT_EQ(queued.Wait().code, StatusCode::CANCELLED);
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_requests_total", {R"(code="CANCELLED")"}, 1),
      1);
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 0), 0);
  server::Call next(*server_, server::GreyRequest(100));
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
  EXPECT_EQ(next.Wait().code, StatusCode::OK);
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_items_total", {R"(outcome="cancelled")"}, 1),
      1);
}

TEST_F(ClassifyCallTest, CancellingWhileTheModelRuns) {
  Start();
  const std::string code = R"(code="CANCELLED")",
                    method = R"(method="Classify")";
  int calls = 0;
  // If the server notices the cancellation too late, it answers the call. The
  // test then tries again.
  while (calls < 20 &&
         server_->WaitForSum("sfmamba_requests_total", {method}, calls) ==
             calls &&
         server_->Sum("sfmamba_requests_total", {method, code}) == 0) {
    ++calls;
    server_->gate().Close();
    server::Call call(*server_, server::GreyRequest(1));
    server_->gate().WaitForBatch();
    call.Cancel();
    EXPECT_EQ(call.Wait().code, StatusCode::CANCELLED);
    server_->AwaitRoundTrip();
    server_->gate().Open();
  }
  EXPECT_EQ(server_->Sum("sfmamba_requests_total", {method, code}), 1)
      << "in " << calls << " calls";
  ExpectAlive();
}

TEST_F(ClassifyCallTest, CancellingAtOnceEndsEachCallOnce) {
  Start();
  for (int i = 0; i < 50; ++i) {
    server::Call call(*server_, server::GreyRequest(i));
    call.Cancel();
    const server::Ending ending = call.Wait();
    EXPECT_TRUE(ending.code == StatusCode::CANCELLED ||
                ending.code == StatusCode::OK);
  }
  ExpectAlive();
  EXPECT_EQ(server_->WaitForSum("sfmamba_in_flight_requests", {}, 0), 0);
}

TEST_F(ClassifyCallTest, ADeadlineThatHasPassedIsRefused) {
  Start();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() -
                       std::chrono::seconds(1));
  ClassifyResponse response;
  EXPECT_EQ(server_->stub()
                .Classify(&context, server::GreyRequest(2), &response)
                .error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  ExpectAlive();
}

}  // namespace
}  // namespace sfmamba::rpc
