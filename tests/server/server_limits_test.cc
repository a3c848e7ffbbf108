// That the limits of a configuration are those of requests.

#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/server/picture.h"
#include "tests/server/vision_service_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

using grpc::StatusCode;

class ServerLimitsTest : public VisionServiceTest {
 protected:
  // The reason that a picture of these sides is refused for.
  std::string ReasonOf(int width, int height) {
    v1::ClassifyRequest request;
    request.add_images()->set_encoded(EncodePng(Gradient(width, height)));
    return Classify(request).reason;
  }
};

TEST_F(ServerLimitsTest, APictureHasAsManyPixelsAsAllowed) {
  v1::ServerConfig config;
  config.set_max_image_pixels(80 * 70);
  config.set_max_image_side(90);
  Start("", config);
  EXPECT_EQ(ReasonOf(80, 70), "");
  EXPECT_EQ(ReasonOf(80, 71), "IMAGE_TOO_LARGE");
  EXPECT_EQ(ReasonOf(90, 60), "");
  EXPECT_EQ(ReasonOf(91, 60), "IMAGE_TOO_LARGE");
}

TEST_F(ServerLimitsTest, APictureHasAsManyBytesAsAllowed) {
  v1::ServerConfig config;
  config.set_max_image_bytes(EncodePng(Gradient(80, 70)).size());
  Start("", config);
  EXPECT_EQ(ReasonOf(80, 70), "");
  EXPECT_EQ(ReasonOf(200, 200), "IMAGE_TOO_LARGE");
}

TEST_F(ServerLimitsTest, APictureTakesNoMoreMemoryThanThereIsForDecoding) {
  v1::ServerConfig config;
  config.set_decode_memory_budget_bytes(1 << 20);
  Start("", config);
  EXPECT_EQ(ReasonOf(80, 70), "");
  EXPECT_EQ(ReasonOf(2000, 2000), "IMAGE_TOO_LARGE");
}

TEST_F(ServerLimitsTest, ARequestHasAsManyImagesAsAllowed) {
  v1::ServerConfig config;
  config.set_max_images_per_request(2);
  Start("", config);
  v1::ClassifyRequest request = GreyRequest(1);
  *request.add_images() = GreyImage(2);
  EXPECT_EQ(Classify(request).code, StatusCode::OK);
  *request.add_images() = GreyImage(3);
  EXPECT_EQ(Classify(request).reason, "TOO_MANY_IMAGES");
}

// A connection that holds too much that no call has received is ended.
TEST_F(ServerLimitsTest, WhatCallsHaveReceivedIsHeldInReceptionNoMore) {
  v1::ServerConfig config;
  config.set_max_message_bytes(4 << 20);
  config.set_memory_budget_bytes(32 << 20);  // A quarter is for reception.
  Start("", config);
  v1::ClassifyRequest request;
  v1::PixelBuffer& pixels = *request.add_images()->mutable_pixels();
  pixels.set_width(1000);
  pixels.set_height(1000);
  pixels.set_format(v1::PixelBuffer::RGB8);
  pixels.set_data(std::string(3'000'000, 'x'));
  for (int i = 0; i < 50; ++i) {
    const Ending ending = Classify(request);
    ASSERT_EQ(ending.code, StatusCode::OK) << i << ending.message;
  }
}

TEST_F(ServerLimitsTest, WhoSetsNoDeadlineHasTheDefault) {
  v1::ServerConfig config;
  config.mutable_default_deadline()->set_nanos(20'000'000);
  Start("max_batch_size: 1", config);
  server_->gate().Close();
  std::thread patient([this] {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kTestPatience));
    v1::ClassifyResponse response;
    EXPECT_TRUE(
        server_->stub().Classify(&context, GreyRequest(1), &response).ok());
  });
  server_->gate().WaitForBatch();
  EXPECT_EQ(Classify(GreyRequest(2)).code, StatusCode::DEADLINE_EXCEEDED);
  server_->gate().Open();
  Join(patient, "the end of a call with a deadline");
}

}  // namespace
}  // namespace sfmamba::server
