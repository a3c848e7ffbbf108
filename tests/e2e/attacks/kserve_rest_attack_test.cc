// Attacks with JSON requests of the Open Inference Protocol. If the server
// parsed them naively, they would take much more memory or time than other
// requests of their size.
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr size_t kMiB = 1 << 20;

// Returns `start` followed by 60 MiB of repetitions of `part`.
std::string Repeated(std::string start, const std::string& part) {
  start.reserve(60 * kMiB + part.size());
  while (start.size() < 60 * kMiB) start += part;
  return start;
}

TEST(KserveRestAttackTest, JsonTakesMemoryAndTimeInProportion) {
  TimeLimit limit("the end of the test", kTestPatience);
  ServerProcess server({"--model_repository=" + WriteTinyModel()});
  ASSERT_TRUE(server.WaitUntilServing());
  const std::string input = R"({"inputs": [{"name": "image", )";
  const std::string attacks[] = {
      std::string(60 * kMiB, '['),
      Repeated("{\"a\": ", "["),
      Repeated("", "{\"a\":"),
      Repeated("{\"inputs\": [{}", ",{}"),
      Repeated("{\"outputs\": [{}", ",{}"),
      Repeated("{\"parameters\": {\"a\": 0", ",\"a\":0"),
      Repeated(input + "\"shape\": [1", ",1"),
      Repeated(input + "\"datatype\": \"FP32\", \"data\": [0", ",0"),
      Repeated(input + "\"datatype\": \"BYTES\", \"data\": [\"\"", ",\"\""),
      Repeated("{\"id\": \"", "\\u0000"),
      Repeated("{\"a\": [1", "9"),
      Repeated("{\"a\": 1e", "9"),
      Repeated("{\"a\": [null", ",null"),
  };
  const int64_t before = server.peak_resident_bytes();
  Victim victim(server);
  for (const std::string& attack : attacks) {
    std::vector<std::thread> senders;
    for (int i = 0; i < 3; ++i) {
      senders.emplace_back([&] {
        httplib::Client client("127.0.0.1", server.http_port());
        client.set_read_timeout(60);
        const auto answer = client.Post("/v2/models/tiny/infer", attack.data(),
                                        attack.size(), "application/json");
        // If the memory for HTTP bodies is used up, the server may refuse a
        // body before all of it has arrived. Then the client may get no answer.
        if (answer) {
          EXPECT_NE(answer->status, 200) << attack.substr(0, 60);
        }
      });
    }
    for (std::thread& sender : senders) sender.join();
  }
  const Victim::Count count = victim.Stop();
  EXPECT_GT(count.sent, 0);
  EXPECT_GE(count.answered, 0.95 * count.sent) << count.first_error;
  // The limit leaves room for three bodies of 60 MiB, and for more than twice
  // their size in addition.
  EXPECT_LT(server.peak_resident_bytes() - before,
            static_cast<int64_t>(600 * kMiB));
}

}  // namespace
}  // namespace sfmamba
