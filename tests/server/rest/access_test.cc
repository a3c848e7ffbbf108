#include "server/rest/access.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/api/kserve/kserve_methods.h"
#include "server/api/vision/vision_methods.h"
#include "tests/server/security/token_texts.h"

namespace sfmamba::rest {
namespace {

using security::Scope;

http::HttpRequest Request(const std::string& method, const std::string& path,
                          const std::vector<std::string>& authorization = {}) {
  http::HttpRequest request;
  request.method = method;
  request.path = path;
  request.peer = "ipv4:10.0.0.7:41234";
  for (const std::string& value : authorization) {
    request.headers.emplace("authorization", value);
  }
  return request;
}

std::optional<Scope> ScopeOfRequest(const http::HttpRequest& request) {
  std::vector<call::Method> methods = api::VisionMethods();
  for (call::Method& method : kserve::KserveMethods({})) {
    methods.push_back(std::move(method));
  }
  return ScopeOf(MethodPaths(methods), request);
}

std::optional<http::HttpResponse> AdmitRequest(const security::Gate* gate,
                                               http::HttpRequest& request) {
  return Admit(gate, ScopeOfRequest(request), request);
}

TEST(ScopeOfTest, ProbesAndTheConsoleAreForEverybody) {
  for (const char* path :
       {"/healthz", "/livez", "/readyz", "/", "/console", "/console/main.js",
        "/v2/health/live", "/v2/health/ready", "/openapi.json"}) {
    EXPECT_EQ(ScopeOfRequest(Request("GET", path)), std::nullopt) << path;
  }
  // Browsers send OPTIONS without a token, before the actual request.
  EXPECT_EQ(ScopeOfRequest(Request("OPTIONS", "/v1/models/a:classify")),
            std::nullopt);
}

TEST(ScopeOfTest, PredictionsInfer) {
  for (const char* path :
       {"/v1/models/a:classify", "/v1/models/a/versions/1:detect",
        "/v2/models/a/infer", "/v2/models/a/versions/3/infer"}) {
    EXPECT_EQ(ScopeOfRequest(Request("POST", path)), Scope::kInfer) << path;
  }
}

TEST(ScopeOfTest, WhatChangesTheServerIsForAdmins) {
  for (const char* path :
       {"/v2/repository/models/a/load", "/v2/repository/models/a/unload",
        "/v2/trace/setting", "/v2/logging"}) {
    EXPECT_EQ(ScopeOfRequest(Request("POST", path)), Scope::kAdmin) << path;
  }
  EXPECT_EQ(ScopeOfRequest(Request("GET", "/v2/logging")), Scope::kRead);
}

TEST(ScopeOfTest, AllElseReads) {
  for (const char* path :
       {"/metrics", "/v1/models", "/v1/models/a", "/v1/models/a:other", "/v2",
        "/v2/models/a", "/v2/models/stats", "/v2/models/a/ready",
        "/v2/repository/index", "/none", "/consoles", "/healthz/", "//", "",
        "/v2/none", "/v1", "*"}) {
    EXPECT_EQ(ScopeOfRequest(Request("GET", path)), Scope::kRead) << path;
  }
}

class AdmitTest : public testing::Test {
 protected:
  AdmitTest() {
    auto tokens = security::Tokens::Parse(
        security::ClientText("camera", "secret", "INFER") +
            security::ClientText("chief", "master", "INFER, READ, ADMIN"),
        {});
    EXPECT_TRUE(tokens.ok()) << tokens.status();
    gate_.Use(*std::move(tokens));
  }
  // Returns 0 if the request is admitted. Otherwise returns the HTTP status of
  // the refusal.
  int Status(const std::string& path,
             const std::vector<std::string>& authorization) {
    http::HttpRequest request = Request("POST", path, authorization);
    const auto refusal = AdmitRequest(&gate_, request);
    return refusal.has_value() ? refusal->status : 0;
  }

  security::Gate gate_{security::Gate::Options()};
};

TEST_F(AdmitTest, ATokenIsAskedForAndItsClientKnown) {
  http::HttpRequest request =
      Request("POST", "/v1/models/a:classify", {"Bearer secret"});
  EXPECT_EQ(AdmitRequest(&gate_, request), std::nullopt);
  EXPECT_EQ(request.caller.name, "camera");
}

TEST_F(AdmitTest, WhoHasNoneIsAskedForIt) {
  http::HttpRequest request = Request("POST", "/v1/models/a:classify");
  const auto refusal = AdmitRequest(&gate_, request);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->status, 401);
  bool asks = false;
  for (const auto& [name, value] : refusal->headers) {
    asks |= name == "WWW-Authenticate" && value == "Bearer";
  }
  EXPECT_TRUE(asks);
  EXPECT_TRUE(absl::StartsWith(refusal->body[0], "{\"code\":16,"))
      << refusal->body[0];
  EXPECT_TRUE(absl::StrContains(refusal->body[0], "TOKEN_INVALID"));
}

TEST_F(AdmitTest, WrongTokensAreRefused) {
  for (const char* value :
       {"", "Bearer", "Bearer ", "Bearer wrong", "secret", "Basic secret",
        "Bearer secret secret", "Bearer secretsecret", "Bearer secre"}) {
    EXPECT_EQ(Status("/v1/models/a:classify", {value}), 401) << value;
  }
  EXPECT_EQ(Status("/v1/models/a:classify", {"bearer  secret "}), 0);
  EXPECT_EQ(Status("/v1/models/a:classify",
                   {absl::StrCat("Bearer ", std::string(16'000, 's'))}),
            401);
}

TEST_F(AdmitTest, OfSeveralTokensNoneIsTaken) {
  EXPECT_EQ(Status("/v1/models/a:classify", {"Bearer secret", "Bearer secret"}),
            401);
}

TEST_F(AdmitTest, ATokenMustHaveTheScope) {
  EXPECT_EQ(Status("/metrics", {"Bearer secret"}), 403);
  EXPECT_EQ(Status("/v2/repository/models/a/load", {"Bearer secret"}), 403);
  EXPECT_EQ(Status("/v2/repository/models/a/load", {"Bearer master"}), 0);
  EXPECT_EQ(Status("/none", {}), 401);
  EXPECT_EQ(Status("/readyz", {}), 0);
}

TEST_F(AdmitTest, TheOpenInferenceProtocolHasItsOwnErrors) {
  http::HttpRequest request = Request("POST", "/v2/models/a/infer");
  const auto refusal = AdmitRequest(&gate_, request);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->status, 401);
  EXPECT_TRUE(absl::StartsWith(refusal->body[0], "{\"error\":"))
      << refusal->body[0];
}

TEST(AdmitWithoutTokensTest, OnlyTheMachineItselfChangesTheServer) {
  const security::Gate gate{security::Gate::Options()};
  http::HttpRequest infer = Request("POST", "/v1/models/a:classify");
  EXPECT_EQ(AdmitRequest(&gate, infer), std::nullopt);
  EXPECT_EQ(infer.caller.name, "ipv4:10.0.0.7");
  http::HttpRequest load = Request("POST", "/v2/repository/models/a/load");
  ASSERT_TRUE(AdmitRequest(&gate, load).has_value());
  load.peer = "ipv4:127.0.0.1:41234";
  EXPECT_EQ(AdmitRequest(&gate, load), std::nullopt);
  EXPECT_EQ(AdmitRequest(nullptr, load), std::nullopt);
}

}  // namespace
}  // namespace sfmamba::rest
