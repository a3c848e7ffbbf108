// Attacks by metadata: header blocks that never end and such that are too
// large. Another client is still answered, and the server's memory is bounded.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/raw_http2.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr char kClassify[] = "/sfmamba.v1.VisionService/Classify";
constexpr int64_t kBudget = 512 * kMiB;
constexpr size_t kBlock = 16 << 10;  // Bytes of a frame.

class MetadataAttackTest : public testing::Test {
 protected:
  MetadataAttackTest()
      : server_({"--model_repository=" + WriteTinyModel(),
                 absl::StrCat("--memory_budget_bytes=", kBudget),
                 absl::StrCat("--max_image_bytes=", 16 * kMiB),
                 absl::StrCat("--max_message_bytes=", 16 * kMiB)}) {}

  void SetUp() override {
    ASSERT_TRUE(server_.WaitUntilServing()) << server_.output();
    before_ = server_.peak_resident_bytes();
  }

  // Sends the header block of one call in frames with `block`, at most `bytes`
  // or until the server ends the connection, over connections that are all open
  // at once. Returns how many of them the server has ended.
  int SendBlocks(int connections, int64_t bytes, const std::string& block) {
    std::vector<RawConnection> open;
    for (int i = 0; i < connections; ++i) {
      open.emplace_back(server_.port());
      open.back().Send(Http2Preface());
      open.back().Send(Http2OpenHeaders(1, kClassify));
    }
    const std::string frame = Http2Continuation(1, block);
    std::vector<bool> ended(connections);
    for (int64_t sent = 0; sent < bytes; sent += frame.size()) {
      for (int i = 0; i < connections; ++i) {
        ended[i] = ended[i] || !open[i].Send(frame) || !open[i].Discard();
      }
    }
    return std::count(ended.begin(), ended.end(), true);
  }

  // A connection that is shared with nobody.
  std::shared_ptr<grpc::Channel> Connect() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(
        server_.address(), grpc::InsecureChannelCredentials(), arguments);
  }

  // The code and message of a call with metadata of so many bytes.
  grpc::Status CallWith(int64_t metadata_bytes) {
    const auto stub = v1::VisionService::NewStub(Connect());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoMilliseconds(kTestPatience));
    context.AddMetadata("x-padding", std::string(metadata_bytes, 'a'));
    v1::ListModelsResponse response;
    return stub->ListModels(&context, v1::ListModelsRequest(), &response);
  }

  void ExpectUnharmed(Victim* victim, int64_t most_growth, double part = 0.95) {
    const Victim::Count count = victim->Stop();
    EXPECT_GT(count.sent, 0);
    EXPECT_GE(count.answered, part * count.sent)
        << "of " << count.sent << ": " << count.first_error;
    const int64_t growth = server_.peak_resident_bytes() - before_;
    RecordProperty("growth_mib", static_cast<int>(growth / kMiB));
    EXPECT_LT(growth, most_growth);
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  ServerProcess server_;
  int64_t before_ = 0;  // Its most RSS before the attack.
};

// Fields in as many frames as it takes, so that the block has no end. gRPC
// keeps them, with as much again: the connections are ended before that is
// much.
TEST_F(MetadataAttackTest, WhoSendsHeadersWithoutEndIsSentAway) {
  std::string block;
  while (block.size() + 120 < kBlock) {
    block += Http2Field("x-field", std::string(100, 'a'));
  }
  Victim victim(server_);
  // The last may have sent less than the limit when all the others are gone.
  EXPECT_GE(SendBlocks(4, 256 * kMiB, block), 3);
  // Until then reading them keeps gRPC's threads busy, of which there are few.
  ExpectUnharmed(&victim, kBudget, 0.75);
}

// The guard against them does not end who sends as much in whole messages.
TEST_F(MetadataAttackTest, WhoSendsWholeMessagesMaySendAnyNumber) {
  const auto stub = v1::VisionService::NewStub(Connect());
  v1::StreamPredictRequest request;
  request.mutable_classify()->set_model("tiny");
  request.mutable_classify()->add_images()->set_encoded(
      std::string(8 * kMiB, 'x'));                         // No picture.
  constexpr int kMessages = 3 * kBudget / 4 / (8 * kMiB);  // Thrice the limit.
  for (int i = 0; i < kMessages; ++i) {
    grpc::ClientContext context;
    v1::ClassifyResponse response;
    const grpc::Status status =
        stub->Classify(&context, request.classify(), &response);
    ASSERT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << i << ": " << status.error_message();
  }
  grpc::ClientContext context;
  const auto stream = stub->StreamPredict(&context);
  for (int i = 0; i < kMessages; ++i) {
    request.set_correlation_id(absl::StrCat(i));
    v1::StreamPredictResponse response;
    ASSERT_TRUE(stream->Write(request) && stream->Read(&response)) << i;
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

// A frame of no bytes costs its sender nine.
TEST_F(MetadataAttackTest, EmptyContinuationsKeepNobodyWaiting) {
  std::string frames;
  while (frames.size() < kBlock) frames += Http2Continuation(1, "");
  std::vector<RawConnection> open;
  Victim victim(server_);
  for (int i = 0; i < 8; ++i) {
    open.emplace_back(server_.port());
    open.back().Send(Http2Preface());
    open.back().Send(Http2OpenHeaders(1, kClassify));
  }
  const absl::Time end = absl::Now() + absl::Seconds(4);
  while (absl::Now() < end) {
    for (RawConnection& connection : open) {
      connection.Send(frames);
      connection.Discard();
    }
  }
  ExpectUnharmed(&victim, kBudget / 2);
}

TEST_F(MetadataAttackTest, TooMuchMetadataIsRefusedByACode) {
  EXPECT_TRUE(CallWith(8 << 10).ok());
  Victim victim(server_);
  for (int i = 0; i < 50; ++i) {
    const grpc::Status status = CallWith(20 << 10);
    ASSERT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
        << status.error_message();
  }
  for (int i = 0; i < 20; ++i) {
    const grpc::Status status = CallWith(kMiB);
    ASSERT_TRUE(status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ||
                status.error_code() == grpc::StatusCode::UNAVAILABLE)
        << status.error_code() << ": " << status.error_message();
  }
  EXPECT_TRUE(CallWith(8 << 10).ok());
  ExpectUnharmed(&victim, kBudget / 2);
}

}  // namespace
}  // namespace sfmamba
