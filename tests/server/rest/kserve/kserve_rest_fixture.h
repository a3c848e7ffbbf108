#ifndef SFMAMBA_TESTS_SERVER_REST_KSERVE_KSERVE_REST_FIXTURE_H_
#define SFMAMBA_TESTS_SERVER_REST_KSERVE_KSERVE_REST_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/api/kserve/kserve_methods.h"
#include "server/call/method_table.h"
#include "server/rest/rest_port.h"
#include "tests/server/api/kserve/kserve_fixture.h"
#include "tests/server/http/fake_exchange.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::rest {

using kserve::kSide;
using kserve::kValues;
using Json = nlohmann::json;

constexpr int kModelClasses = server::FakeModel::kClasses;

constexpr int64_t kMaxJsonAnswerBytes = 400;

// Runs the Open Inference Protocol over REST without connections. A fake model
// makes the predictions.
class KserveRestTest : public prediction::PredictionTest {
 protected:
  KserveRestTest() {
    kserve::KserveOptions methods;
    methods.version = "1.2";
    methods.live = [this] { return live_; };
    methods.ready = [this] { return ready_; };
    methods.draining = [this] { return draining_; };
    methods_ = std::make_unique<call::MethodTable>(
        prediction::TransportEnvironment{*environment_},
        kserve::KserveMethods(methods));
    RestService::Options options;
    options.kserve.max_json_answer_bytes = kMaxJsonAnswerBytes;
    rest_ = std::make_unique<RestService>(*methods_, options);
  }

  void Drain() {
    draining_ = true;
    rest_->StartDraining();
  }

  void Send(http::FakeClient* client, const std::string& method,
            const std::string& path, std::string body = "",
            std::multimap<std::string, std::string> headers = {}) {
    http::HttpRequest request;
    request.method = method;
    request.path = path;
    request.body = std::move(body);
    request.headers = std::move(headers);
    request.peer = "ipv4:127.0.0.1:1";
    rest_->Handle(client->Ask(std::move(request)));
  }

  struct Answer {
    int status;
    std::string body;
    // The header Inference-Header-Content-Length.
    std::string json_bytes;
    std::string error() const {
      const Json json = Json::parse(body, nullptr, false);
      return json.is_object() ? json.value("error", "") : "";
    }
  };
  Answer Ask(const std::string& method, const std::string& path,
             std::string body = "",
             std::multimap<std::string, std::string> headers = {}) {
    http::FakeClient client;
    Send(&client, method, path, std::move(body), std::move(headers));
    Answer answer = {client.Answer().status, client.Body(),
                     client.Header("Inference-Header-Content-Length")};
    client.TakeAnswer();
    return answer;
  }
  Answer Infer(const std::string& body,
               std::multimap<std::string, std::string> headers = {}) {
    return Ask("POST", "/v2/models/fake/infer", body, std::move(headers));
  }

  // Sends one image whose values are all 0.25. `json` is added to the request.
  Answer InferBinary(const std::string& json) {
    const std::string head = absl::StrCat(
        "{", json, json.empty() ? "" : ", ",
        R"("inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 3, )",
        kSide, ", ", kSide, R"(], "parameters": {"binary_data_size": )",
        kValues * sizeof(float), "}}]}");
    return Infer(
        head + kserve::Raw(std::vector<float>(kValues, 0.25f)),
        {{"inference-header-content-length", absl::StrCat(head.size())}});
  }

  bool live_ = true, ready_ = true, draining_ = false;
  std::unique_ptr<call::MethodTable> methods_;
  std::unique_ptr<RestService> rest_;
};

// Returns FakeModel's logit of class `c` for an image whose values are all
// 0.25.
inline float ExpectedLogit(int c) {
  float sum = 0;
  for (int i = c; i < kValues; i += 10) sum += 0.25f * (1 + i % 7) / 100;
  return sum;
}

}  // namespace sfmamba::rest

#endif  // SFMAMBA_TESTS_SERVER_REST_KSERVE_KSERVE_REST_FIXTURE_H_
