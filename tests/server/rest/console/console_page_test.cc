#include "server/rest/console/console_page.h"

#include <cstddef>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rest/console/console_files.h"
#include "tests/server/http/fake_exchange.h"

namespace sfmamba::rest {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

http::HttpRequest Get(const std::string& path) {
  http::HttpRequest request;
  request.method = "GET";
  request.path = path;
  return request;
}

std::string Header(const http::HttpResponse& response,
                   const std::string& name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return "";
}

TEST(ConsolePageTest, ThePageIsAtTheRoot) {
  const http::HttpResponse page = ConsolePage(Get("/"));
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(Header(page, "Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.body, ElementsAre(HasSubstr("<!doctype html>")));
}

TEST(ConsolePageTest, EveryFileIsServedWithItsTypeAndTheSameProtection) {
  const std::map<std::string, std::string> types = {
      {"html", "text/html; charset=utf-8"},
      {"css", "text/css; charset=utf-8"},
      {"js", "text/javascript; charset=utf-8"},
      {"svg", "image/svg+xml"},
      {"webp", "image/webp"},
  };
  ASSERT_GT(ConsoleFiles().size(), 3);
  for (const EmbeddedFile& file : ConsoleFiles()) {
    const std::string name(file.name);
    SCOPED_TRACE(name);
    const http::HttpResponse response =
        ConsolePage(Get(absl::StrCat("/console/", name)));
    EXPECT_EQ(response.status, 200);
    EXPECT_THAT(response.body, ElementsAre(std::string(file.content)));
    EXPECT_EQ(Header(response, "Content-Type"),
              types.at(name.substr(name.rfind('.') + 1)));
    EXPECT_EQ(Header(response, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(Header(response, "Referrer-Policy"), "no-referrer");
    EXPECT_EQ(Header(response, "Cache-Control"), "no-cache");
    const std::string policy = Header(response, "Content-Security-Policy");
    for (const char* part :
         {"default-src 'none'", "script-src 'self'", "style-src 'self'",
          "connect-src 'self'", "img-src 'self';", "frame-ancestors 'none'",
          "base-uri 'none'", "form-action 'none'"}) {
      EXPECT_THAT(policy, HasSubstr(part));
    }
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  }
}

TEST(ConsolePageTest, NoFileNamesAnotherPlaceOrRunsText) {
  for (const EmbeddedFile& file : ConsoleFiles()) {
    if (absl::EndsWith(file.name, ".webp")) continue;
    SCOPED_TRACE(file.name);
    const std::string text(file.content);
    EXPECT_THAT(text, Not(HasSubstr("innerHTML")));
    EXPECT_THAT(text, Not(HasSubstr("eval(")));
    EXPECT_THAT(text, Not(HasSubstr("https://")));
    // An SVG file must contain the namespace name "http://www.w3.org/...".
    if (!absl::EndsWith(file.name, ".svg")) {
      EXPECT_THAT(text, Not(HasSubstr("http://")));
    }
  }
}

TEST(ConsolePageTest, AllFilesTogetherAreSmall) {
  size_t bytes = 0;
  for (const EmbeddedFile& file : ConsoleFiles()) bytes += file.content.size();
  EXPECT_LT(bytes, 170'000);
}

TEST(ConsolePageTest, AFileThatTheCallerHasIsNotSentAgain) {
  const std::string etag = Header(ConsolePage(Get("/")), "ETag");
  ASSERT_THAT(etag, AllOf(testing::StartsWith("\""), testing::EndsWith("\"")));
  for (const std::string& known :
       {etag, absl::StrCat("W/", etag), absl::StrCat("\"other\", ", etag),
        std::string("*")}) {
    SCOPED_TRACE(known);
    http::HttpRequest request = Get("/");
    request.headers.emplace("if-none-match", known);
    const http::HttpResponse response = ConsolePage(request);
    EXPECT_EQ(response.status, 304);
    EXPECT_THAT(response.body, IsEmpty());
    EXPECT_EQ(Header(response, "ETag"), etag);
  }
  http::HttpRequest request = Get("/");
  request.headers.emplace("if-none-match", "\"other\"");
  EXPECT_EQ(ConsolePage(request).status, 200);
  EXPECT_NE(Header(ConsolePage(Get("/console/main.js")), "ETag"), etag);
}

TEST(ConsolePageTest, NoOtherFileCanBeRead) {
  for (const char* path : {"/console/", "/console/none.js", "/console/../main",
                           "/console//index.html", "/index.html", "/console"}) {
    SCOPED_TRACE(path);
    const http::HttpResponse response = ConsolePage(Get(path));
    EXPECT_EQ(response.status, 404);
    EXPECT_THAT(response.body, ElementsAre(HasSubstr("no such file")));
  }
}

TEST(ConsolePageTest, IsOnlyRead) {
  http::HttpRequest request = Get("/");
  request.method = "HEAD";
  EXPECT_EQ(ConsolePage(request).status, 200);
  request.method = "POST";
  const http::HttpResponse response = ConsolePage(request);
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(Header(response, "Allow"), "GET, HEAD, OPTIONS");
}

}  // namespace
}  // namespace sfmamba::rest
