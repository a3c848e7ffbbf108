// Attacks with pictures and answers that take long. The server must still
// answer another client, drop work that no client waits for, and stop without
// waiting for it.

#include <signal.h>

#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/attacks/large_pictures.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Returns a request for the maximum number of objects, each with a mask.
v1::DetectRequest EveryMask(v1::DetectParams::MaskEncoding encoding) {
  v1::DetectRequest request;
  request.set_model("finder");
  request.add_images()->set_encoded(BlankPng());
  request.mutable_params()->set_score_threshold(0);
  request.mutable_params()->set_nms_iou_threshold(1);
  request.mutable_params()->set_max_detections(1000);
  request.mutable_params()->set_mask_encoding(encoding);
  return request;
}

// Returns a request for "tiny" with the maximum number of large pictures.
v1::ClassifyRequest ManyPictures() {
  v1::ClassifyRequest request;
  request.set_model("tiny");
  const std::string png = BlankPng();
  for (int i = 0; i < 64; ++i) request.add_images()->set_encoded(png);
  return request;
}

std::vector<std::string> Flags(const std::vector<std::string>& more = {}) {
  const std::string repository = WriteTinyModel();
  AddRandomDenseModels(repository);
  std::vector<std::string> flags = {"--model_repository=" + repository,
                                    "--random_init", "--decode_threads=2"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

double Metric(const ServerProcess& server, const std::string& name,
              const std::initializer_list<std::string>& labels = {}) {
  auto samples = Samples(HttpGet(server.metrics_port(), "/metrics"));
  return samples[name] + SumOf(samples, name, labels);
}

void ExpectAnswered(Victim& victim) {
  const Victim::Count count = victim.Stop();
  EXPECT_GE(count.answered, 0.95 * count.sent)
      << "of " << count.sent << ": " << count.first_error;
}

class MaskAttackTest
    : public testing::TestWithParam<v1::DetectParams::MaskEncoding> {};

INSTANTIATE_TEST_SUITE_P(Encodings, MaskAttackTest,
                         testing::Values(v1::DetectParams::COCO_RLE,
                                         v1::DetectParams::PNG_CROP),
                         [](const auto& info) {
                           return v1::DetectParams::MaskEncoding_Name(
                               info.param);
                         });

TEST_P(MaskAttackTest, AThousandMasksOfFiftyMegapixelsKeepNobodyWaiting) {
  ServerProcess server(Flags());
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  const auto stub = NewStub(server);
  Victim victim(server);
  v1::DetectRequest request = EveryMask(GetParam());
  request.mutable_options()->set_include_timing(true);
  grpc::ClientContext context;
  SetTimeout(kTestPatience, &context);
  v1::DetectResponse response;
  const grpc::Status status = stub->Detect(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ExpectAnswered(victim);
  EXPECT_EQ(response.results(0).detections_size(), 1000);
  RecordProperty("answer_bytes", response.ByteSizeLong());
  RecordProperty("timing", response.timing().ShortDebugString());
  EXPECT_LT(server.peak_resident_bytes(), 1536 * kMiB);
}

TEST_P(MaskAttackTest, AStopDoesNotWaitForMasks) {
  ServerProcess server(Flags({"--drain_delay=0s", "--drain_timeout=0.1s"}));
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([this, &server] {
      grpc::ClientContext context;
      SetTimeout(kTestPatience, &context);
      v1::DetectResponse response;
      NewStub(server)->Detect(&context, EveryMask(GetParam()), &response);
    });
  }
  WaitUntil([&server] { return Metric(server, "sfmamba_batches_total") > 0; },
            "a batch of the detector");
  server.Signal(SIGTERM);
  const int code = server.Wait();
  EXPECT_TRUE(code == 0 || code == 6) << code;
  EXPECT_EQ(server.output().find("outlives the drain"), std::string::npos)
      << server.output();
  for (std::thread& caller : callers) caller.join();
}

// Two decode threads would need about 45 s for the pictures.
TEST(PictureAttackTest, ManyLargePicturesKeepNobodyWaiting) {
  ServerProcess server(Flags());
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  const auto stub = NewStub(server);
  Victim victim(server);
  const v1::ClassifyRequest request = ManyPictures();
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    SetTimeout(absl::Seconds(3), &context);
    v1::ClassifyResponse response;
    EXPECT_FALSE(stub->Classify(&context, request, &response).ok());
  }
  ExpectAnswered(victim);
  EXPECT_LT(server.peak_resident_bytes(), 1536 * kMiB);
}

// The server must also stop decoding pictures that no client waits for.
TEST(PictureAttackTest, LargePicturesThatNobodyWaitsForAreGivenUp) {
  ServerProcess server(Flags({"--drain_delay=0s", "--drain_timeout=0.1s"}));
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  std::thread caller([&server] {
    grpc::ClientContext context;
    SetTimeout(kTestPatience, &context);
    v1::ClassifyResponse response;
    NewStub(server)->Classify(&context, ManyPictures(), &response);
  });
  WaitUntil(
      [&server] { return Metric(server, "sfmamba_decode_threads_busy") > 0; },
      "a picture on a decode thread");
  server.Signal(SIGTERM);
  const int code = server.Wait();
  EXPECT_TRUE(code == 0 || code == 6) << code;
  EXPECT_EQ(server.output().find("outlives the drain"), std::string::npos)
      << server.output();
  caller.join();
}

}  // namespace
}  // namespace sfmamba
