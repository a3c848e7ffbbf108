#include "server/security/tokens.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/server/security/token_texts.h"

namespace sfmamba::security {
namespace {

TEST(TokensTest, FindsTheClientOfEachToken) {
  const auto tokens = Tokens::Parse(
      ClientText("camera", "one", "INFER") +
          ClientText("console", "two", "INFER, READ, ADMIN",
                     absl::StrCat("sha256: '", HashOf("three"), "'")),
      {});
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  const Tokens::Client* const camera = tokens->Find("one");
  ASSERT_NE(camera, nullptr);
  EXPECT_EQ(camera->caller.name, "camera");
  EXPECT_TRUE(camera->caller.has_token);
  EXPECT_TRUE(camera->Has(Scope::kInfer));
  EXPECT_FALSE(camera->Has(Scope::kRead));
  EXPECT_FALSE(camera->Has(Scope::kAdmin));
  const Tokens::Client* const console = tokens->Find("two");
  ASSERT_NE(console, nullptr);
  EXPECT_EQ(tokens->Find("three"), console);
  EXPECT_TRUE(console->Has(Scope::kRead));
  EXPECT_TRUE(console->Has(Scope::kAdmin));
}

TEST(TokensTest, FindsNobodyByWhatIsNoToken) {
  const auto tokens = Tokens::Parse(ClientText("camera", "one", "INFER"), {});
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  for (const std::string& token :
       {std::string(), std::string("on"), std::string("one "),
        std::string("ONE"), HashOf("one"), std::string(1 << 20, 'x')}) {
    EXPECT_EQ(tokens->Find(token), nullptr) << token.substr(0, 100);
  }
}

TEST(TokensTest, HashMayBeInUpperCase) {
  std::string text = ClientText("camera", "one", "INFER");
  const std::string hash = HashOf("one");
  text.replace(text.find(hash), hash.size(), absl::AsciiStrToUpper(hash));
  const auto tokens = Tokens::Parse(text, {});
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_NE(tokens->Find("one"), nullptr);
}

TEST(TokensTest, QuotaIsTheClientsOrTheCommonOne) {
  Quota common;
  common.max_items = 7;
  common.items_per_second = 5;
  common.burst = 9;
  const auto tokens = Tokens::Parse(
      ClientText("a", "1", "INFER") +
          ClientText("b", "2", "INFER", "quota { max_items: 3 }") +
          ClientText("c", "3", "INFER", "quota { items_per_second: 0.5 }"),
      common);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  const Quota& a = tokens->Find("1")->caller.quota;
  EXPECT_EQ(a.max_items, 7);
  EXPECT_EQ(a.burst, 9);
  EXPECT_EQ(tokens->Find("2")->caller.quota.max_items, 3);
  EXPECT_EQ(tokens->Find("2")->caller.quota.items_per_second, 5);
  const Quota& c = tokens->Find("3")->caller.quota;
  EXPECT_EQ(c.max_items, 7);
  EXPECT_EQ(c.items_per_second, 0.5);
  // The common burst is not used, because this client has another rate.
  EXPECT_EQ(c.burst, 0);
}

TEST(TokensTest, NamesMayHave64Characters) {
  const std::string name(64, 'x');
  const auto tokens = Tokens::Parse(ClientText(name, "one", "INFER"), {});
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->Find("one")->caller.name, name);
}

// Expects an error that names `field`.
void ExpectWrong(const std::string& text, const std::string& field) {
  const absl::Status status = Tokens::Parse(text, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_TRUE(absl::StrContains(status.message(), field)) << status << "\n"
                                                          << text;
}

TEST(TokensTest, ErrorNamesTheField) {
  const std::string good = ClientText("camera", "one", "INFER");
  ExpectWrong(ClientText("", "one", "INFER"), "client[0].name");
  ExpectWrong(good + ClientText("ipv4:10.0.0.7", "two", "INFER"),
              "client[1].name");
  ExpectWrong(ClientText(std::string(65, 'x'), "one", "INFER"),
              "client[0].name");
  ExpectWrong(good + ClientText("camera", "two", "INFER"), "client[1].name");
  ExpectWrong(good + ClientText("other", "one", "INFER"),
              "client[1].sha256[0]");
  ExpectWrong("client { name: 'a' scope: INFER }", "client[0].sha256");
  ExpectWrong("client { name: 'a' sha256: '12' scope: INFER }",
              "client[0].sha256[0]");
  ExpectWrong(ClientText("a", "one", ""), "client[0].scope");
  ExpectWrong(ClientText("a", "one", "TOKEN_SCOPE_UNSPECIFIED"),
              "client[0].scope");
  ExpectWrong(ClientText("a", "one", "INFER", "quota { max_items: -1 }"),
              "client[0].quota");
  ExpectWrong(
      ClientText("a", "one", "INFER", "quota { items_per_second: nan }"),
      "client[0].quota");
  ExpectWrong("client { nam: 'a' }", "line 1, column");
  ExpectWrong(std::string(100, '\0'), "token_file");
}

TEST(TokensTest, ErrorTellsWhatWasGotAndExpected) {
  for (const std::string& text :
       {std::string("client { nam: 'a' }"), std::string(100, '\0'),
        ClientText("a", "one", "INFER") + ClientText("a", "two", "INFER"),
        ClientText("a", "one", "INFER") + ClientText("b", "one", "INFER")}) {
    const absl::Status status = Tokens::Parse(text, {}).status();
    EXPECT_TRUE(absl::StrContains(status.message(), ": got ")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), ", expected ")) << status;
  }
}

TEST(TokensTest, NoErrorShowsWhatMayBeAToken) {
  for (const char* text :
       {"client { name: 'a' sha256: 'tok_secret' scope: INFER }",
        "client { name: 'a' sha256: tok_secret scope: INFER }",
        "client { tok_secret: 'a' }", "tok_secret", "client { name: tok_secret",
        "client { name: 'a b tok_secret' }"}) {
    const absl::Status status = Tokens::Parse(text, {}).status();
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_FALSE(absl::StrContains(status.message(), "tok_secret")) << status;
  }
}

TEST(TokensTest, TooManyAreRefused) {
  std::string text;
  for (int i = 0; i < 4096; ++i) {
    text += ClientText(absl::StrCat("c", i), absl::StrCat(i), "INFER");
  }
  EXPECT_TRUE(Tokens::Parse(text, {}).ok());
  ExpectWrong(text + ClientText("last", "last", "INFER"), "got 4097 hashes");
}

TEST(TokensTest, AnEmptyFileLetsNobodyIn) {
  const auto tokens = Tokens::Parse("", {});
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->Find(""), nullptr);
}

}  // namespace
}  // namespace sfmamba::security
