#include "server/rest/rest_service.h"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
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

// Answers with a word, to know that it was asked.
RestService::Handler Saying(const std::string& word) {
  return [word](std::unique_ptr<http::Exchange> exchange) {
    http::HttpResponse response;
    response.body.push_back(word);
    exchange->Answer(std::move(response), [] {});
  };
}

class RestServiceTest : public prediction::PredictionTest {
 protected:
  RestServiceTest() {
    options_.live = [this] { return live_.load(); };
    options_.ready = [this] { return ready_.load(); };
    options_.metrics = [](const http::HttpRequest&) {
      http::HttpResponse response;
      response.headers = {{"Content-Type", "text/plain; version=0.0.4"}};
      response.body = {"sfmamba_build_info 1\n"};
      return response;
    };
    options_.kserve = Saying("kserve");
    options_.console = Saying("console");
    Make();
  }
  void Make() {
    service_ = std::make_unique<RestService>(*environment_, options_);
  }

  // The status and the body of an answer.
  std::string Ask(const http::HttpRequest& request) {
    http::FakeClient client;
    service_->Handle(client.Ask(request));
    const std::string body = client.Body();
    const int status = client.Answer().status;
    client.TakeAnswer();
    return absl::StrCat(status, " ", body);
  }

  std::atomic<bool> live_{true};
  std::atomic<bool> ready_{true};
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

TEST_F(RestServiceTest, ShowsMetrics) {
  http::FakeClient client;
  service_->Handle(client.Ask(Get("/metrics")));
  EXPECT_EQ(client.Body(), "sfmamba_build_info 1\n");
  EXPECT_EQ(client.Header("Content-Type"), "text/plain; version=0.0.4");
  client.TakeAnswer();
}

TEST_F(RestServiceTest, EachPathHasItsHandler) {
  EXPECT_EQ(Ask(Get("/v2")), "200 kserve");
  EXPECT_EQ(Ask(Get("/v2/models/a/infer")), "200 kserve");
  EXPECT_EQ(Ask(Get("/")), "200 console");
  EXPECT_EQ(Ask(Get("/console/console.js")), "200 console");
  for (const char* path :
       {"", "/v", "/v2x", "/consoles", "//", "/v3/models", "/healthz/"}) {
    EXPECT_TRUE(absl::StartsWith(Ask(Get(path)), "404 {\"code\":5,")) << path;
  }
}

TEST_F(RestServiceTest, WhatIsNotServedIsNotFound) {
  options_.kserve = nullptr;
  options_.console = nullptr;
  options_.metrics = nullptr;
  Make();
  for (const char* path : {"/v2", "/", "/metrics"}) {
    EXPECT_TRUE(absl::StartsWith(Ask(Get(path)), "404 ")) << path;
  }
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
  EXPECT_LT(Ask(Get("/" + std::string(100'000, 'x'))).size(), 1000);
}

TEST_F(RestServiceTest, AHandlerThatThrowsIsAnsweredFor) {
  options_.kserve = [](std::unique_ptr<http::Exchange>) {
    throw std::runtime_error("broken");
  };
  Make();
  http::FakeClient client;
  EXPECT_THROW(service_->Handle(client.Ask(Get("/v2"))), std::runtime_error);
  EXPECT_EQ(client.Answer().status, 500);
  EXPECT_TRUE(absl::StartsWith(client.Body(), "{\"code\":13,"));
  client.TakeAnswer();
}

TEST_F(RestServiceTest, IsIdleOnceAllAnswersAreSent) {
  EXPECT_TRUE(service_->WaitUntilIdle(absl::ZeroDuration()));
  http::FakeClient client;
  service_->Handle(client.Ask(Get("/healthz")));
  client.Answer();
  EXPECT_FALSE(service_->WaitUntilIdle(absl::ZeroDuration()));
  client.TakeAnswer();
  EXPECT_TRUE(service_->WaitUntilIdle(absl::ZeroDuration()));
}

}  // namespace
}  // namespace sfmamba::rest
