// Inference over REST whose tensors are in shared memory.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/kserve/shared_memory.h"
#include "tests/server/kserve/kserve_fixture.h"
#include "tests/server/kserve/shared_object.h"
#include "tests/server/rest/kserve/kserve_rest_fixture.h"

namespace sfmamba::rest {
namespace {

using testing::HasSubstr;

// A server whose clients may register shared memory. The object "in" has the
// image of InferBinary().
class SharedRestTest : public KserveRestTest {
 protected:
  SharedRestTest() { Make(&memory_); }

  Answer Register(const std::string& name, const std::string& key,
                  int64_t bytes,
                  std::multimap<std::string, std::string> headers = {}) {
    return Ask(
        "POST",
        absl::StrCat("/v2/systemsharedmemory/region/", name, "/register"),
        Json{{"key", key}, {"offset", 0}, {"byte_size", bytes}}.dump(),
        std::move(headers));
  }
  static Json Region(const std::string& name, int64_t bytes) {
    return {{"shared_memory_region", name}, {"shared_memory_byte_size", bytes}};
  }
  // An output that is to be written into a region.
  static Json Logits(const std::string& region, int64_t bytes) {
    return {{"name", "logits"}, {"parameters", Region(region, bytes)}};
  }
  // Asks about the image in region "in".
  Answer InferShared(const std::vector<Json>& outputs = {},
                     std::multimap<std::string, std::string> headers = {}) {
    Json input = {{"name", "image"},
                  {"datatype", "FP32"},
                  {"shape", {1, 3, kSide, kSide}},
                  {"parameters", Region("in", kImageBytes)}};
    const Json body = {{"inputs", std::vector<Json>{std::move(input)}},
                       {"outputs", outputs}};
    return Infer(body.dump(), std::move(headers));
  }

  static constexpr int64_t kImageBytes = kValues * sizeof(float);
  static constexpr int64_t kLogitBytes = kModelClasses * sizeof(float);
  kserve::SharedMemory memory_{1 << 20};
  kserve::SharedObject in_{kserve::Raw(std::vector<float>(kValues, 0.25f))};
};

TEST_F(SharedRestTest, TensorsStayThere) {
  const std::multimap<std::string, std::string> page = {
      {"origin", "http://localhost"}};
  EXPECT_EQ(Register("in", in_.key(), kImageBytes, page).status, 501);
  EXPECT_EQ(Register("in", in_.key(), kImageBytes).status, 200);
  EXPECT_EQ(InferShared().body, InferBinary("").body);
  EXPECT_EQ(InferShared({}, page).status, 501);

  const kserve::SharedObject out(std::string(kLogitBytes + 3, '?'));
  EXPECT_EQ(Register("out", out.key(), kLogitBytes + 3).status, 200);
  Json in_region = Logits("out", kLogitBytes);
  // tritonclient says so of each output in shared memory.
  in_region["parameters"]["binary_data"] = false;
  const Answer answer = InferShared({in_region, {{"name", "embedding"}}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json outputs = Json::parse(answer.body)["outputs"];
  EXPECT_EQ(outputs[0]["parameters"], Region("out", kLogitBytes));
  EXPECT_FALSE(outputs[0].contains("data"));
  EXPECT_EQ(outputs[1]["data"].size(), 2);
  std::vector<float> logits;
  for (int c = 0; c < kModelClasses; ++c) logits.push_back(ExpectedLogit(c));
  EXPECT_EQ(out.Bytes(), kserve::Raw(logits) + "???");
}

TEST_F(SharedRestTest, RegionsAreListedAndForgotten) {
  ASSERT_EQ(Register("in", in_.key(), kImageBytes).status, 200);
  ASSERT_EQ(Register("part", in_.key(), 8).status, 200);
  const Json part = {
      {"name", "part"}, {"key", in_.key()}, {"offset", 0}, {"byte_size", 8}};
  const std::string path = "/v2/systemsharedmemory";
  const auto listed = [&](const std::string& region) {
    return Json::parse(Ask("GET", path + region + "/status").body);
  };
  EXPECT_EQ(listed("").size(), 2);
  EXPECT_EQ(listed("/region/part"), Json::array({part}));
  EXPECT_EQ(listed("/region/none"), Json::array());
  Ask("POST", path + "/unregister", "", {{"origin", "null"}});
  EXPECT_EQ(listed("").size(), 2);
  EXPECT_EQ(Ask("POST", path + "/region/in/unregister").status, 200);
  EXPECT_EQ(listed(""), Json::array({part}));
  EXPECT_EQ(Ask("POST", path + "/unregister").status, 200);
  EXPECT_EQ(listed(""), Json::array());
  const Json server = Json::parse(Ask("GET", "/v2").body);
  EXPECT_THAT(server["extensions"].get<std::vector<std::string>>(),
              testing::Contains("system_shared_memory"));
}

TEST_F(SharedRestTest, RefusesWhatIsNotThere) {
  EXPECT_THAT(Register("r", "/../etc/passwd", 1).error(), HasSubstr("key: "));
  EXPECT_THAT(Register("r", "/none", 1).error(), HasSubstr("key: "));
  EXPECT_THAT(Register("r", in_.key(), kImageBytes + 1).error(),
              HasSubstr("byte_size: "));
  EXPECT_EQ(Register("r", in_.key(), kImageBytes + 1).status, 400);
  EXPECT_THAT(InferShared().error(),
              HasSubstr("inputs[0].parameters.shared_memory_region: got "
                        "\"in\", expected a region that is registered"));
  ASSERT_EQ(Register("in", in_.key(), kImageBytes).status, 200);
  EXPECT_EQ(Register("in", in_.key(), 8).status, 400);
  EXPECT_THAT(InferShared({Logits("out", kLogitBytes)}).error(),
              HasSubstr("outputs[0].parameters.shared_memory_region"));
  const kserve::SharedObject small("four");
  ASSERT_EQ(Register("out", small.key(), 4).status, 200);
  EXPECT_EQ(InferShared({Logits("out", 4)}).status, 400);
  EXPECT_EQ(small.Bytes(), "four");
  in_.Truncate(100);
  EXPECT_EQ(InferShared().status, 400);
}

}  // namespace
}  // namespace sfmamba::rest
