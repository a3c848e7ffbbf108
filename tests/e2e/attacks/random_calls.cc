#include "tests/e2e/attacks/random_calls.h"

#include <signal.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/picture.h"
#include "tests/testing/http.h"

namespace sfmamba {
namespace {

std::string LengthPrefixed(const std::string& bytes) {
  const auto size = static_cast<uint32_t>(bytes.size());
  return std::string(reinterpret_cast<const char*>(&size), 4) + bytes;
}

}  // namespace

RandomCallsTest::RandomCallsTest() {
  const std::string repository = WriteTinyModel("max_batch_size: 4");
  AddRandomDenseModels(repository);
  server_ = std::make_unique<ServerProcess>(std::vector<std::string>{
      "--model_repository=" + repository, "--random_init",
      "--model_control=explicit", "--drain_delay=0s"});
}

RandomMessages::Words RandomCallsTest::Words() const {
  const std::string picture = server::EncodePng(server::Gradient(64, 64));
  const std::vector<std::string> models = {"tiny", "tiny", "finder", "painter",
                                           "models/tiny/versions/1"};
  return {
      {"model", models},
      {"DetectRequest.model", {"finder", "finder", "tiny"}},
      {"SegmentRequest.model", {"painter", "painter", "tiny"}},
      {"model_name", models},
      {"name", {"tiny", "finder", "painter", "image", "image", "image"}},
      {"version", {"", "", "1", "1", "2"}},
      {"model_version", {"", "", "1", "1", "2"}},
      {"images", {}},
      {"encoded", {picture, picture, picture.substr(0, 200)}},
      {"width", {"64"}},
      {"height", {"64"}},
      {"data", {std::string(3 * 64 * 64, '\7'), ""}},
      {"row_stride_bytes", {"0"}},
      {"request", {}},
      {"inputs", {}},
      {"datatype", {"BYTES", "BYTES", "BYTES", "BYTES", "UINT8"}},
      {"shape", {"1", "1", "1", "3"}},
      {"raw_input_contents", {LengthPrefixed(picture), "", "\1"}},
      {"bytes_contents", {picture}},
      {"key",
       {"shared_memory_region", "priority", "timeout", "classification"}},
      {"value", {}},
      {"service", {"", "models/tiny", "sfmamba.v1.VisionService"}},
      {"file_by_filename", {"sfmamba/v1/vision.proto"}},
      {"file_containing_symbol",
       {"sfmamba.v1.VisionService", "inference.GRPCInferenceService"}},
      {"label", {"stable", "canary"}},
      {"log_level", {"info", "error"}},
      {"trace_ratio", {"0", "1"}},
      {"list_services", {""}},
  };
}

void RandomCallsTest::RunCallers(const std::function<void(int seed)>& caller) {
  const int seed = testing::UnitTest::GetInstance()->random_seed();
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back(caller, seed * kCallers + i);
  }
  for (std::thread& running : callers) {
    Join(running, "the calls' end", kTestPatience);
  }
}

void RandomCallsTest::ExpectUnharmed() {
  for (const char* held :
       {"sfmamba_in_flight_requests", "sfmamba_memory_held_bytes",
        "sfmamba_queue_items", "sfmamba_decode_queue_items"}) {
    WaitUntil([&] { return Sum(held) == 0; }, absl::StrCat(held, " of 0"));
  }
  for (const auto& [name, value] :
       Samples(HttpGet(server_->metrics_port(), "/metrics"))) {
    EXPECT_GE(value, 0) << name;
  }
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait(), 0) << server_->output();
}

double RandomCallsTest::Sum(const std::string& name) {
  return SumOf(Samples(HttpGet(server_->metrics_port(), "/metrics")), name, {});
}

}  // namespace sfmamba
