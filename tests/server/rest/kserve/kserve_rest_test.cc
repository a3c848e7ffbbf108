#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/server/api/kserve/kserve_fixture.h"
#include "tests/server/http/fake_exchange.h"
#include "tests/server/picture.h"
#include "tests/server/rest/kserve/kserve_rest_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::rest {
namespace {

using testing::HasSubstr;

TEST_F(KserveRestTest, ProbesSayWhatIsSo) {
  for (const char* method : {"GET", "HEAD"}) {
    EXPECT_EQ(Ask(method, "/v2/health/live").body, "{\"live\":true}");
    EXPECT_EQ(Ask(method, "/v2/health/live").status, 200);
    EXPECT_EQ(Ask(method, "/v2/health/ready").status, 200);
    EXPECT_EQ(Ask(method, "/v2/health/ready").body, "{\"ready\":true}");
    EXPECT_EQ(Ask(method, "/v2/models/fake/ready").body,
              "{\"name\":\"fake\",\"ready\":true}");
    EXPECT_EQ(Ask(method, "/v2/models/fake/ready").status, 200);
    EXPECT_EQ(Ask(method, "/v2/models/fake/versions/3/ready").status, 200);
  }
  EXPECT_EQ(Ask("GET", "/v2/models/other/ready").status, 400);
  EXPECT_EQ(Ask("GET", "/v2/models/fake/versions/4/ready").status, 400);
  live_ = false;
  EXPECT_EQ(Ask("GET", "/v2/health/live").status, 400);
  EXPECT_EQ(Ask("GET", "/v2/health/ready").status, 200);
  ready_ = false;
  EXPECT_EQ(Ask("GET", "/v2/health/ready").status, 400);
  Drain();
  EXPECT_EQ(Ask("GET", "/v2/models/fake/ready").status, 400);
}

TEST_F(KserveRestTest, DescribesServerAndModels) {
  const Json server = Json::parse(Ask("GET", "/v2").body);
  EXPECT_EQ(server["name"], "sfmamba");
  EXPECT_EQ(server["version"], "1.2");
  EXPECT_THAT(server["extensions"].get<std::vector<std::string>>(),
              testing::Contains("binary_tensor_data"));
  for (const char* path : {"/v2/models/fake", "/v2/models/fake/versions/3"}) {
    const Json metadata = Json::parse(Ask("GET", path).body);
    EXPECT_EQ(metadata["name"], "fake");
    EXPECT_EQ(metadata["versions"], Json({"3"}));
    EXPECT_EQ(metadata["inputs"][0]["shape"], Json({-1, 3, kSide, kSide}));
    EXPECT_EQ(metadata["outputs"][0]["name"], "logits");
  }
  const Json config = Json::parse(Ask("GET", "/v2/models/fake/config").body);
  EXPECT_EQ(config["name"], "fake");
  EXPECT_EQ(config["max_batch_size"], 1);
  EXPECT_EQ(config["input"][0]["dims"], Json({3, kSide, kSide}));
  EXPECT_TRUE(config.contains("dynamic_batching"));
  EXPECT_EQ(Ask("GET", "/v2/models/other").status, 404);
  EXPECT_EQ(Ask("GET", "/v2/models/other/config").status, 404);
  EXPECT_EQ(Ask("GET", "/v2/models/other/stats").status, 404);
  EXPECT_EQ(Ask("GET", "/v2/models/fake/versions/x").status, 404);
}

TEST_F(KserveRestTest, StatisticsAreNumbers) {
  ASSERT_EQ(InferBinary("").status, 200);
  const Json one = Json::parse(Ask("GET", "/v2/models/fake/stats").body);
  EXPECT_EQ(one["model_stats"][0]["inference_count"], 1);
  EXPECT_EQ(one["model_stats"][0]["inference_stats"]["success"]["count"], 1);
  const Json all = Json::parse(Ask("GET", "/v2/models/stats").body);
  EXPECT_EQ(all["model_stats"].size(), 3);
}

TEST_F(KserveRestTest, TheIndexIsAnArray) {
  for (const char* body : {"", "{}", "{\"ready\": true}"}) {
    const Json index =
        Json::parse(Ask("POST", "/v2/repository/index", body).body);
    ASSERT_EQ(index.size(), 3) << body;
    EXPECT_EQ(index[0]["name"], "fake");
    EXPECT_EQ(index[0]["version"], "3");
    EXPECT_EQ(index[0]["state"], "READY");
    EXPECT_EQ(index[0]["reason"], "");
  }
  for (const std::string& body :
       {std::string("["), std::string("[]"), std::string("{\"ready\": 1}"),
        std::string(1 << 20, '[')}) {
    EXPECT_EQ(Ask("POST", "/v2/repository/index", body).status, 400);
  }
}

TEST_F(KserveRestTest, WhatThereIsNotIsRefusedAsByGrpc) {
  const Answer load = Ask("POST", "/v2/repository/models/fake/load", "{}");
  EXPECT_EQ(load.status, 400);
  EXPECT_NE(load.error(), "");
  EXPECT_EQ(Ask("POST", "/v2/repository/models/fake/unload").status, 400);
  EXPECT_EQ(Ask("GET", "/v2/systemsharedmemory/status").status, 501);
  const Answer memory =
      Ask("POST", "/v2/cudasharedmemory/region/r/register", "{}");
  EXPECT_EQ(memory.status, 501);
  EXPECT_EQ(memory.error(),
            "shared memory was removed: send tensors in the request");
  for (const char* path :
       {"/v2/trace/setting", "/v2/logging", "/v2/models/fake/trace/setting"}) {
    EXPECT_EQ(Ask("GET", path).status, 200) << path;
    EXPECT_EQ(Ask("GET", path).body, "{}") << path;
    const Answer change = Ask("POST", path, "{}");
    EXPECT_EQ(change.status, 501) << path;
    EXPECT_THAT(change.error(), HasSubstr("a change of settings")) << path;
  }
  for (const char* path : {"/v2/models/other/trace/setting",
                           "/v2/models/fake/versions/4/trace/setting"}) {
    EXPECT_EQ(Ask("GET", path).status, 404) << path;
    EXPECT_EQ(Ask("POST", path, "{}").status, 404) << path;
  }
  const Answer nothing = Ask("GET", "/v2/nothing");
  EXPECT_EQ(nothing.status, 404);
  EXPECT_THAT(nothing.error(), HasSubstr("/v2/nothing"));
  const std::string shown = "/v2/" + std::string(196, 'x');
  EXPECT_EQ(Ask("GET", shown + "y").error(), "nothing is served at " + shown);
  EXPECT_EQ(Ask("GET", "/v2/models/fake/infer").status, 405);
  EXPECT_THAT(Ask("GET", "/v2/models/fake/infer").error(),
              HasSubstr("got the method GET, expected POST, OPTIONS"));
  EXPECT_EQ(Ask("DELETE", "/v2/models/fake").status, 405);
}

// A web page that is open in a browser on this machine must not change the
// models.
TEST_F(KserveRestTest, APageMayNotChangeModels) {
  for (const char* change : {"load", "unload"}) {
    const Answer answer =
        Ask("POST", absl::StrCat("/v2/repository/models/fake/", change), "{}",
            {{"origin", "http://elsewhere"}});
    EXPECT_EQ(answer.status, 403) << answer.body;
  }
  EXPECT_EQ(Requests("RepositoryModelLoad", ""), 1);
}

TEST_F(KserveRestTest, WhatIsAboutNoModelIsCountedForNone) {
  Ask("POST", "/v2/repository/index");
  Ask("POST", "/v2/repository/index", "no JSON");
  Ask("POST", "/v2/repository/models/fake/load", "{}");
  Ask("POST", "/v2/repository/models/fake/unload");
  EXPECT_EQ(Requests("RepositoryIndex", ""), 2);
  EXPECT_EQ(Requests("RepositoryModelLoad", ""), 1);
  EXPECT_EQ(Requests("RepositoryModelUnload", ""), 1);
  Ask("GET", "/v2/models/fake");
  EXPECT_EQ(Requests("ModelMetadata", "fake"), 1);
}

TEST_F(KserveRestTest, BinaryTensorsAreAnsweredInEitherForm) {
  const Answer json = InferBinary(R"("id": "seven")");
  ASSERT_EQ(json.status, 200) << json.body;
  EXPECT_EQ(json.json_bytes, "");
  const Json parsed = Json::parse(json.body);
  EXPECT_EQ(parsed["id"], "seven");
  EXPECT_EQ(parsed["model_name"], "fake");
  EXPECT_EQ(parsed["model_version"], "3");
  EXPECT_EQ(parsed["outputs"][0]["shape"], Json({1, kModelClasses}));
  const auto logits = parsed["outputs"][0]["data"].get<std::vector<float>>();
  ASSERT_EQ(logits.size(), kModelClasses);
  EXPECT_EQ(logits[3], ExpectedLogit(3));

  const Answer binary =
      InferBinary(R"("parameters": {"binary_data_output": true})");
  ASSERT_EQ(binary.status, 200) << binary.body;
  const size_t head = std::stoul(binary.json_bytes);
  EXPECT_EQ(binary.body.substr(head, kModelClasses * sizeof(float)),
            kserve::Raw(logits));
  EXPECT_EQ(Json::parse(binary.body.substr(
                0, head))["outputs"][0]["parameters"]["binary_data_size"],
            kModelClasses * sizeof(float));
}

TEST_F(KserveRestTest, OutputsAreChosen) {
  const Answer answer = InferBinary(
      R"("outputs": [{"name": "logits", "parameters": {"classification": 2}}])");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json output = Json::parse(answer.body)["outputs"][0];
  EXPECT_EQ(output["datatype"], "BYTES");
  EXPECT_EQ(output["shape"], Json({1, 2}));
  EXPECT_THAT(output["data"][0].get<std::string>(), HasSubstr(":"));
  EXPECT_THAT(InferBinary(R"("outputs": [{"name": "x"}])").error(),
              HasSubstr("outputs[0].name: got \"x\", expected one of logits"));
}

TEST_F(KserveRestTest, LargeAnswersComeAsBinaryDataOnly) {
  // The answer for each image has ten logits and two embedding values. The JSON
  // for all images exceeds 400 bytes.
  constexpr int kImages = 9;
  const auto ask = [this](bool binary) {
    const std::string head = absl::StrCat(
        R"({"parameters": {"binary_data_output": )", binary ? "true" : "false",
        R"(}, "inputs": [{"name": "image", "datatype": "UINT8", "shape": [)",
        kImages, ", 3, ", kSide, ", ", kSide,
        R"(], "parameters": {"binary_data_size": )", kImages * kValues, "}}]}");
    return Infer(
        head + std::string(kImages * kValues, 'x'),
        {{"inference-header-content-length", absl::StrCat(head.size())}});
  };
  EXPECT_EQ(ask(true).status, 200);
  const Answer refused = ask(false);
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.error(), HasSubstr("expected at most 400"));
}

TEST_F(KserveRestTest, JsonNumbersHaveTheSameAnswer) {
  const auto ask = [this](const std::string& datatype, const Json& value) {
    const Json body = {
        {"inputs",
         {{{"name", "image"},
           {"datatype", datatype},
           {"shape", {1, 3, kSide, kSide}},
           {"data", Json::array({std::vector<Json>(kValues, value)})}}}}};
    return Infer(body.dump());
  };
  const Answer floats = ask("FP32", 0.25);
  ASSERT_EQ(floats.status, 200) << floats.body;
  EXPECT_EQ(floats.body, InferBinary("").body);
  EXPECT_EQ(ask("UINT8", 25).status, 200);
  EXPECT_THAT(ask("FP64", 1).error(),
              HasSubstr("inputs[0].datatype: got \"FP64\""));
}

TEST_F(KserveRestTest, PicturesComeBinaryInBase64AndAlone) {
  const std::string png = server::EncodePng(server::Gradient(80, 70));
  const std::string base64 = absl::Base64Escape(png);
  const Answer json = Infer(absl::StrCat(
      R"({"inputs": [{"name": "image", "datatype": "BYTES", "shape": [1],)",
      R"("data": [{"b64": ")", base64, "\"}]}]}"));
  ASSERT_EQ(json.status, 200) << json.body;
  const Answer alone = Infer(png, {{"inference-header-content-length", "0"}});
  EXPECT_EQ(alone.body, json.body);
  const std::string head = absl::StrCat(
      R"({"inputs": [{"name": "image", "datatype": "BYTES", "shape": [1, 1],)",
      R"("parameters": {"binary_data_size": )", 4 + png.size(), "}}]}");
  const Answer binary =
      Infer(head + kserve::RawElement(png),
            {{"inference-header-content-length", absl::StrCat(head.size())}});
  EXPECT_EQ(binary.body, json.body);
}

TEST_F(KserveRestTest, ErrorsAreThoseOfGrpcInTheWordsOfRest) {
  EXPECT_THAT(Infer("{").error(), HasSubstr("got no JSON"));
  EXPECT_THAT(Infer("{}").error(), HasSubstr("inputs: got 0, expected one"));
  const std::string start =
      R"({"inputs": [{"name": "image", "datatype": "UINT8", "shape": )";
  EXPECT_THAT(Infer(start + "[1, 3, 2, 1]}]}").error(),
              HasSubstr("inputs[0].data: got 0, expected one"));
  EXPECT_THAT(
      Infer(start + "[1, 3, 2, 1], \"data\": [1]}]}").error(),
      HasSubstr("inputs[0].data: got 1 bytes, expected 6 of the shape"));
  EXPECT_THAT(Infer(start + "[-1, 3, 2, 1], \"data\": [1]}]}").error(),
              HasSubstr("inputs[0].shape: got [-1, 3, 2, 1], expected"));
  EXPECT_THAT(
      Infer(start + "[4611686018427387904, 3, 9, 9], \"data\": []}]}").error(),
      HasSubstr("inputs[0].shape: got [4611686018427387904"));
  EXPECT_THAT(
      InferBinary(R"("parameters": {"sequence_id": 7})").error(),
      HasSubstr("parameters.sequence_id: got int64_param: 7, expected 0"));
  EXPECT_EQ(Infer("{}", {{"grpc-timeout", "soon"}}).status, 400);
  const Answer unknown = Ask("POST", "/v2/models/other/infer", "{}");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(Ask("POST", "/v2/models/fake/versions/4/infer", "{}").status, 404);
  const Answer memory = Infer(R"({"inputs": [{"name": "image", "parameters":
      {"shared_memory_region": "r"}}]})");
  EXPECT_EQ(memory.status, 501) << memory.body;
}

TEST_F(KserveRestTest, EveryRequestIsCountedByItsCode) {
  EXPECT_EQ(InferBinary("").status, 200);
  EXPECT_EQ(Infer("{").status, 400);
  Drain();
  EXPECT_EQ(InferBinary("").status, 503);
  EXPECT_EQ(Ask("GET", "/v2/models/fake").status, 503);
  EXPECT_EQ(Ask("POST", "/v2/repository/index").status, 503);
  const auto count = [this](const std::string& method, const std::string& code,
                            const std::string& model) {
    double sum = 0;
    for (const auto& [series, value] : observability::Values(metrics_)) {
      if (series.find("requests_total") == std::string::npos) continue;
      if (series.find("method=" + method) != std::string::npos &&
          series.find("code=" + code) != std::string::npos &&
          series.find("model=" + model) != std::string::npos) {
        sum += value;
      }
    }
    return sum;
  };
  EXPECT_EQ(count("ModelInfer", "OK", "fake"), 1);
  EXPECT_EQ(count("ModelInfer", "INVALID_ARGUMENT", "_unknown"), 1);
  EXPECT_EQ(count("ModelInfer", "UNAVAILABLE", "_unknown"), 1);
  EXPECT_EQ(count("ModelMetadata", "UNAVAILABLE", "_unknown"), 1);
}

TEST_F(KserveRestTest, ARefusedRequestsBytesAreCountedOnce) {
  const auto bytes = [this] {
    double sum = 0;
    for (const prometheus::MetricFamily& family : metrics_.Collect()) {
      if (family.name != "sfmamba_request_bytes") continue;
      for (const auto& metric : family.metric) {
        sum += metric.histogram.sample_sum;
      }
    }
    return sum;
  };
  EXPECT_EQ(Infer("{").status, 400);
  EXPECT_EQ(bytes(), 1);
  Drain();
  EXPECT_EQ(Infer("{    ").status, 503);
  EXPECT_EQ(bytes(), 6);
}

TEST_F(KserveRestTest, AnAnswerIsHeldUntilItIsSent) {
  const auto held = [this] {
    return Value("sfmamba_in_flight_requests{method=ModelInfer}");
  };
  http::FakeClient client;
  Send(&client, "POST", "/v2/models/fake/infer",
       server::EncodePng(server::Gradient(80, 70)),
       {{"inference-header-content-length", "0"}});
  EXPECT_EQ(client.Answer().status, 200);
  EXPECT_EQ(held(), 1);
  client.TakeAnswer();
  WaitUntil([&] { return held() == 0; }, "the end of the request");
}

TEST_F(KserveRestTest, AThousandAtOnceAreAllAnswered) {
  const std::string png = server::EncodePng(server::Gradient(80, 70));
  const auto clients = std::make_unique<http::FakeClient[]>(1000);
  for (int i = 0; i < 1000; ++i) {
    Send(&clients[i], "POST", "/v2/models/fake/infer", png,
         {{"inference-header-content-length", "0"}});
  }
  std::map<int, int> answers;
  for (int i = 0; i < 1000; ++i) {
    ++answers[clients[i].Answer().status];
    clients[i].TakeAnswer();
  }
  EXPECT_GT(answers[200], 0);
  EXPECT_EQ(answers[200] + answers[429], 1000);
  EXPECT_EQ(Value("sfmamba_in_flight_requests{method=ModelInfer}"), 0);
}

TEST_F(KserveRestTest, AClientThatGoesCancelsItsRequest) {
  MayDecode(0);
  http::FakeClient waiting, before;
  const std::string png = server::EncodePng(server::Gradient(80, 70));
  Send(&waiting, "POST", "/v2/models/fake/infer", png,
       {{"inference-header-content-length", "0"}});
  EXPECT_FALSE(waiting.answered());
  waiting.Cancel();
  // This client disconnects before the server reads its request.
  before.Cancel();
  Send(&before, "POST", "/v2/models/fake/infer", png,
       {{"inference-header-content-length", "0"}});
  MayDecode(100);
  EXPECT_EQ(waiting.Answer().status, 499);
  EXPECT_EQ(before.Answer().status, 499);
}

TEST_F(KserveRestTest, ADeadlineIsKept) {
  MayDecode(0);
  http::FakeClient client;
  Send(&client, "POST", "/v2/models/fake/infer",
       server::EncodePng(server::Gradient(80, 70)),
       {{"inference-header-content-length", "0"}, {"grpc-timeout", "5S"}});
  AdvanceClock(absl::Seconds(6));
  MayDecode(100);
  EXPECT_EQ(client.Answer().status, 504);
  client.TakeAnswer();
}

}  // namespace
}  // namespace sfmamba::rest
