#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/api/vision/vision_methods.h"
#include "server/call/method_table.h"
#include "server/rest/rest_port.h"
#include "tests/server/http/fake_exchange.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::rest {
namespace {

http::HttpRequest Get(const std::string& path) {
  http::HttpRequest request;
  request.method = "GET";
  request.path = path;
  return request;
}

class RestServiceTest : public prediction::PredictionTest {
 protected:
  RestServiceTest() {
    options_.version = "1.2";
    options_.live = [this] { return live_.load(); };
    options_.ready = [this] { return ready_.load(); };
    Make();
  }
  void Make() { service_ = std::make_unique<RestService>(methods_, options_); }

  // Returns the status and the body of the answer. Sets `type_` to its content
  // type.
  std::string Ask(const http::HttpRequest& request) {
    http::FakeClient client;
    service_->Handle(client.Ask(request));
    const std::string body = client.Body();
    const int status = client.Answer().status;
    type_ = client.Header("Content-Type");
    client.TakeAnswer();
    return absl::StrCat(status, " ", body);
  }

  std::string type_;
  std::atomic<bool> live_{true};
  std::atomic<bool> ready_{true};
  const call::MethodTable methods_{
      prediction::TransportEnvironment{*environment_}, api::VisionMethods()};
  RestService::Options options_;
  std::unique_ptr<RestService> service_;
};

TEST_F(RestServiceTest, AnswersProbes) {
  for (const char* path : {"/healthz", "/livez", "/readyz"}) {
    EXPECT_EQ(Ask(Get(path)), "200 ok\n") << path;
  }
  live_ = false;
  EXPECT_EQ(Ask(Get("/healthz")), "503 not ok\n");
  EXPECT_EQ(Ask(Get("/livez")), "503 not ok\n");
  EXPECT_EQ(Ask(Get("/readyz")), "200 ok\n");
  ready_ = false;
  EXPECT_EQ(Ask(Get("/readyz")), "503 not ok\n");
}

TEST_F(RestServiceTest, EachPathHasItsHandler) {
  options_.version = "1.2";
  Make();
  EXPECT_TRUE(absl::StartsWith(Ask(Get("/v2/none")), "404 {\"error\":"));
  EXPECT_TRUE(absl::StartsWith(Ask(Get("/")), "200 <!doctype html>"));
  EXPECT_TRUE(absl::StartsWith(Ask(Get("/console/main.js")), "200 "));
  EXPECT_TRUE(absl::StrContains(Ask(Get("/metrics")), "sfmamba_"));
  EXPECT_TRUE(absl::StrContains(Ask(Get("/v1/models")), "models/fake"));
  const std::string description = Ask(Get("/openapi.json"));
  EXPECT_EQ(type_, "application/json");
  EXPECT_TRUE(absl::StrContains(description, "\"3.0.3\""));
  EXPECT_TRUE(absl::StrContains(description, "\"version\": \"1.2\""));
  for (const char* path :
       {"", "/v", "/v2x", "/consoles", "//", "/v3/models", "/healthz/"}) {
    EXPECT_TRUE(absl::StartsWith(Ask(Get(path)), "404 {\"code\":5,")) << path;
  }
}

TEST_F(RestServiceTest, TheConsoleMayBeOff) {
  options_.console = false;
  Make();
  EXPECT_TRUE(absl::StartsWith(Ask(Get("/")), "404 "));
}

TEST_F(RestServiceTest, OtherMethodsAreRefused) {
  for (const char* path : {"/healthz", "/readyz", "/metrics"}) {
    http::HttpRequest request = Get(path);
    request.method = "DELETE";
    http::FakeClient client;
    service_->Handle(client.Ask(std::move(request)));
    EXPECT_EQ(client.Answer().status, 405) << path;
    EXPECT_EQ(client.Header("Allow"), "GET, HEAD, OPTIONS");
    client.TakeAnswer();
  }
}

TEST_F(RestServiceTest, APathMustBeText) {
  EXPECT_TRUE(absl::StartsWith(Ask(Get("/\xff")), "400 {\"code\":3,"));
  const std::string shown = "/" + std::string(255, 'x');
  EXPECT_TRUE(absl::StrContains(Ask(Get(shown + "y")),
                                "there is no path " + shown + "\""));
}

}  // namespace
}  // namespace sfmamba::rest
