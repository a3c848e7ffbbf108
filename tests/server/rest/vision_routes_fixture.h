#ifndef SFMAMBA_TESTS_SERVER_REST_VISION_ROUTES_FIXTURE_H_
#define SFMAMBA_TESTS_SERVER_REST_VISION_ROUTES_FIXTURE_H_

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "server/api/vision/vision_methods.h"
#include "server/call/method_table.h"
#include "server/rest/rest_port.h"
#include "sfmamba/v1/vision.pb.h"
#include "tests/server/http/fake_exchange.h"
#include "tests/server/picture.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::rest {

inline constexpr int kSide = server::FakeModel::kSide;

inline http::HttpRequest RequestOf(const std::string& method,
                                   const std::string& path,
                                   const std::string& type = "",
                                   std::string body = "") {
  http::HttpRequest request;
  request.method = method;
  request.path = path;
  request.body = std::move(body);
  request.peer = "ipv4:127.0.0.1:1";
  if (!type.empty()) request.headers.emplace("content-type", type);
  return request;
}

inline http::HttpRequest PictureRequest() {
  return RequestOf("POST", "/v1/models/fake:classify", "image/png",
                   server::EncodePng(server::Gradient(kSide, kSide)));
}

template <typename Message>
Message FromJson(const std::string& json) {
  Message message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok())
      << json;
  return message;
}

// Sends REST requests for the fake model "fake" without a socket.
class VisionRoutesTest : public prediction::PredictionTest {
 protected:
  VisionRoutesTest()
      : methods_(prediction::TransportEnvironment{*environment_},
                 api::VisionMethods()),
        service_(methods_, {}) {}

  // Returns the body of the answer, whose status must be `status`.
  std::string Ask(http::HttpRequest request, int status = 200) {
    http::FakeClient client;
    service_.Handle(client.Ask(std::move(request)));
    const std::string body = client.Body();
    EXPECT_EQ(client.Answer().status, status) << body;
    type_ = client.Header("Content-Type");
    retry_after_ = client.Header("Retry-After");
    allow_ = client.Header("Allow");
    client.TakeAnswer();
    return body;
  }
  v1::ClassifyResponse Classify(http::HttpRequest request) {
    return FromJson<v1::ClassifyResponse>(Ask(std::move(request)));
  }
  // Expects a refusal with this status, whose message contains `part`.
  void ExpectRefused(http::HttpRequest request, int status,
                     const std::string& part) {
    const std::string body = Ask(std::move(request), status);
    EXPECT_TRUE(absl::StrContains(body, part)) << body;
    EXPECT_EQ(type_, "application/json");
  }

  std::string type_, retry_after_, allow_;
  const call::MethodTable methods_;
  RestService service_;
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_TESTS_SERVER_REST_VISION_ROUTES_FIXTURE_H_
