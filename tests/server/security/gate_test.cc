#include "server/security/gate.h"

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "tests/server/security/token_texts.h"

namespace sfmamba::security {
namespace {

constexpr char kFar[] = "ipv4:10.0.0.7:41234";
constexpr char kNear[] = "ipv4:127.0.0.1:41234";

class GateTest : public testing::Test {
 protected:
  GateTest() : gate_(Options()) {}

  Gate::Options Options() {
    Gate::Options options;
    options.quota.max_items = 5;
    options.refused = [this](absl::string_view reason) {
      refused_.emplace_back(reason);
    };
    return options;
  }
  void Use(const std::string& text) {
    auto tokens = Tokens::Parse(text, options_quota_);
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    gate_.Use(*std::move(tokens));
  }
  // Returns the caller's name, or the reason if the call is refused.
  std::string Ask(const std::string& authorization, Scope scope,
                  const std::string& peer = kFar) {
    const auto caller = gate_.Check(authorization, {peer, {}}, scope);
    return caller.ok() ? caller->name
                       : server::GetErrorDetail(caller.status()).reason;
  }

  const Quota options_quota_;
  std::vector<std::string> refused_;
  Gate gate_;
};

TEST_F(GateTest, WithoutTokensAllMayInferAndRead) {
  EXPECT_EQ(Ask("", Scope::kInfer), "ipv4:10.0.0.7");
  EXPECT_EQ(Ask("", Scope::kRead), "ipv4:10.0.0.7");
  EXPECT_EQ(Ask("Bearer anything", Scope::kRead), "ipv4:10.0.0.7");
  const auto caller = gate_.Check("", {kFar, {}}, Scope::kInfer);
  ASSERT_TRUE(caller.ok());
  EXPECT_FALSE(caller->has_token);
  EXPECT_EQ(caller->quota.max_items, 5);
}

TEST_F(GateTest, AProxyOnThisMachineSpeaksForItsClient) {
  gate_.Trust(*TrustedProxies::Parse({"127.0.0.0/8", "10.0.0.0/8"}));
  const auto name = [this](const std::string& peer,
                           const std::string& forwarded, Scope scope) {
    const auto caller = gate_.Check("", {peer, {forwarded}}, scope);
    return caller.ok() ? caller->name
                       : server::GetErrorDetail(caller.status()).reason;
  };
  EXPECT_EQ(name(kNear, "8.8.8.8", Scope::kInfer), "ipv4:8.8.8.8");
  EXPECT_EQ(name(kNear, "8.8.8.8", Scope::kAdmin), "SCOPE_MISSING");
  EXPECT_EQ(name(kNear, "", Scope::kAdmin), "ipv4:127.0.0.1");
  EXPECT_EQ(name(kFar, "127.0.0.1", Scope::kAdmin), "SCOPE_MISSING");
  Use(ClientText("camera", "secret", "INFER"));
  const auto caller =
      gate_.Check("Bearer secret", {kNear, {"8.8.8.8"}}, Scope::kInfer);
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller->name, "camera") << "a token's name wins";
}

TEST_F(GateTest, WithoutTokensOnlyThisMachineMayChangeAnything) {
  for (const char* peer : {kNear, "ipv4:127.8.8.8:1", "ipv6:%5B::1%5D:1",
                           "ipv6:%5B::ffff:127.0.0.1%5D:1"}) {
    EXPECT_NE(Ask("", Scope::kAdmin, peer), "SCOPE_MISSING") << peer;
  }
  for (const char* peer :
       {kFar, "ipv4:12.7.0.0:1", "ipv6:%5B::1:1%5D:1", "ipv6:%5Bfe80::1%5D:1",
        "unknown", "", "ipv6:%5B127::1%5D:1"}) {
    EXPECT_EQ(Ask("", Scope::kAdmin, peer), "SCOPE_MISSING") << peer;
  }
  EXPECT_TRUE(absl::StrContains(
      gate_.Check("", {kFar, {}}, Scope::kAdmin).status().message(),
      "ipv4:10.0.0.7 lacks the scope admin, expected a call from the server's "
      "own machine"));
}

TEST_F(GateTest, WithTokensEachCallNeedsOneThatHasTheScope) {
  Use(ClientText("camera", "one", "INFER") +
      ClientText("operator", "two", "READ, ADMIN"));
  EXPECT_EQ(Ask("", Scope::kInfer), "TOKEN_INVALID");
  EXPECT_EQ(Ask("Bearer one", Scope::kInfer), "camera");
  EXPECT_EQ(Ask("Bearer one", Scope::kRead), "SCOPE_MISSING");
  EXPECT_EQ(Ask("Bearer one", Scope::kAdmin), "SCOPE_MISSING");
  EXPECT_EQ(Ask("Bearer two", Scope::kInfer), "SCOPE_MISSING");
  EXPECT_EQ(Ask("Bearer two", Scope::kRead), "operator");
  EXPECT_EQ(Ask("Bearer two", Scope::kAdmin), "operator");
  EXPECT_EQ(Ask("", Scope::kRead, kNear), "TOKEN_INVALID");
  EXPECT_EQ(Ask("", Scope::kAdmin, kNear), "TOKEN_INVALID");
}

TEST_F(GateTest, ACallerMayReadWhoseTokenHasTheScope) {
  EXPECT_TRUE(gate_.Check("", {kFar, {}}, Scope::kInfer)->may_read);
  Use(ClientText("camera", "one", "INFER") +
      ClientText("console", "two", "INFER, READ"));
  EXPECT_FALSE(gate_.Check("Bearer one", {kFar, {}}, Scope::kInfer)->may_read);
  EXPECT_TRUE(gate_.Check("Bearer two", {kFar, {}}, Scope::kInfer)->may_read);
}

TEST_F(GateTest, HeaderHasTheBearersForm) {
  Use(ClientText("camera", "one", "INFER"));
  for (const char* good : {"Bearer one", "bearer one", "BEARER  one "}) {
    EXPECT_EQ(Ask(good, Scope::kInfer), "camera") << good;
  }
  for (const char* bad :
       {"", "one", "Bearer", "Bearer ", "Bearerone", "Basic one", "Digest one",
        "Bearer one two", "Bearer \"one\""}) {
    EXPECT_EQ(Ask(bad, Scope::kInfer), "TOKEN_INVALID") << bad;
  }
}

TEST_F(GateTest, ErrorsHaveTheirCodesAndShowNoToken) {
  Use(ClientText("camera", "one", "INFER"));
  const absl::Status unknown =
      gate_.Check("Bearer tok_secret", {kFar, {}}, Scope::kInfer).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_FALSE(absl::StrContains(unknown.ToString(), "tok_secret"));
  EXPECT_TRUE(absl::StrContains(unknown.message(), "authorization"));
  const absl::Status scope =
      gate_.Check("Bearer one", {kFar, {}}, Scope::kAdmin).status();
  EXPECT_EQ(scope.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(server::GetMetadata("client", scope), "camera");
  EXPECT_EQ(server::GetMetadata("scope", scope), "admin");
}

TEST_F(GateTest, EachRefusalIsTold) {
  Use(ClientText("camera", "one", "INFER"));
  Ask("", Scope::kInfer);
  Ask("Bearer one", Scope::kAdmin);
  Ask("Bearer one", Scope::kInfer);
  EXPECT_EQ(refused_,
            (std::vector<std::string>{"TOKEN_INVALID", "SCOPE_MISSING"}));
}

TEST_F(GateTest, ChangedTokensCountAtOnce) {
  Use(ClientText("camera", "one", "INFER"));
  Use(ClientText("camera", "two", "INFER"));
  EXPECT_EQ(Ask("Bearer one", Scope::kInfer), "TOKEN_INVALID");
  EXPECT_EQ(Ask("Bearer two", Scope::kInfer), "camera");
}

TEST_F(GateTest, CallersMayAskWhileTokensChange) {
  Use(ClientText("camera", "one", "INFER"));
  std::vector<std::thread> callers;
  std::atomic<int> refused{0};
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([this, &refused] {
      for (int k = 0; k < 2000; ++k) {
        if (!gate_.Check("Bearer one", {kFar, {}}, Scope::kInfer).ok())
          ++refused;
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    Use(ClientText("camera", "one", "INFER") +
        ClientText("other", absl::StrCat(i), "INFER"));
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(refused, 0);
}

}  // namespace
}  // namespace sfmamba::security
