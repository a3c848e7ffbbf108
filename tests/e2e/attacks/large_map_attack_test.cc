// Attacks that request class maps of large pictures. Making such a map takes
// much longer than running the network. Another client must get all its
// answers.

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/attacks/large_pictures.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/server/http/raw_client.h"
#include "tests/server/picture.h"

namespace sfmamba {
namespace {

constexpr absl::Duration kRound = absl::Seconds(6);

v1::SegmentRequest LargeMap() {
  const std::string grey(size_t{1} * kLargeSide * kLargeSide, 'x');
  v1::SegmentRequest request;
  request.set_model("everyday_segmenter");
  request.add_images()->set_encoded(
      server::EncodeJpeg(kLargeSide, kLargeSide, 1,
                         reinterpret_cast<const uint8_t*>(grey.data())));
  request.mutable_params()->set_output_size(v1::SegmentParams::ORIGINAL);
  request.mutable_params()->set_include_confidence_map(true);
  return request;
}

v1::ClassifyRequest ManyHeatMaps() {
  const std::string png = BlankPng();
  v1::ClassifyRequest request;
  request.set_model("everyday");
  for (int i = 0; i < 64; ++i) request.add_images()->set_encoded(png);
  request.mutable_params()->mutable_heat_map()->set_encoding(
      v1::HeatMapParams::PNG);
  return request;
}

// Sends a small picture over REST, closes the sending side of the connection,
// and returns the answer.
std::string ClassifyAndSendNoMore(const ServerProcess& server) {
  const std::string jpeg = server::EncodeJpeg(server::Gradient(16, 16));
  http::RawClient client(server.http_port());
  client.Send(
      absl::StrCat("POST /v1/models/everyday:classify HTTP/1.1\r\nHost: a\r\n"
                   "Content-Length: ",
                   jpeg.size(), "\r\n\r\n", jpeg));
  client.CloseSending();
  return client.ReadAll();
}

// Copies the models and returns the copy's path. The server does not follow
// links out of its repository.
std::string CopyOfModels() {
  const std::string folder = testing::TempDir() + "/models";
  std::filesystem::copy("models", folder,
                        std::filesystem::copy_options::recursive);
  return folder;
}

TEST(LargeMapAttackTest, MapsOfFiftyMegapixelsKeepNobodyWaiting) {
  ServerProcess server({"--model_repository=" + CopyOfModels()});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  const v1::SegmentRequest map = LargeMap();
  const v1::ClassifyRequest heat_maps = ManyHeatMaps();
  Victim victim(server.address(), absl::Seconds(1), "everyday", "",
                absl::Seconds(5));
  const absl::Time end = base::SteadyNow() + kRound;
  std::vector<std::thread> attackers;
  const auto attack = [&](std::function<void()> call) {
    attackers.emplace_back([call = std::move(call), end] {
      while (base::SteadyNow() < end) call();
    });
  };
  std::atomic<int> maps{0};
  for (int i = 0; i < 3; ++i) {
    attack([&] {
      grpc::ClientContext context;
      SetTimeout(absl::Seconds(20), &context);
      v1::SegmentResponse response;
      maps += NewStub(server)->Segment(&context, map, &response).ok();
    });
  }
  attack([&] {
    grpc::ClientContext context;
    SetTimeout(kRound, &context);
    v1::ClassifyResponse response;
    NewStub(server)->Classify(&context, heat_maps, &response);
  });
  attack([&] {
    EXPECT_TRUE(
        absl::StartsWith(ClassifyAndSendNoMore(server), "HTTP/1.1 200"));
  });
  for (std::thread& attacker : attackers) attacker.join();
  const Victim::Count count = victim.Stop();
  EXPECT_EQ(count.answered, count.sent) << count.first_error;
  EXPECT_GT(maps, 0) << "they are legal";
  RecordProperty("slowest", absl::FormatDuration(count.slowest));
}

}  // namespace
}  // namespace sfmamba
