#include "server/rest/kserve/json_tokens.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"

namespace sfmamba::rest {
namespace {

using testing::HasSubstr;

std::string Refused(const std::string& json) {
  const absl::Status status = CheckJsonTokens(json);
  EXPECT_EQ(server::GetErrorDetail(status).reason, "MALFORMED_MESSAGE");
  return std::string(status.message());
}

TEST(KserveJsonTokensTest, StringsHaveALimit) {
  const std::string most(kMaxJsonStringBytes - 1, 'x');
  EXPECT_TRUE(CheckJsonTokens("[\"" + most + "\", \"" + most + "\"]").ok());
  EXPECT_THAT(Refused("[\"\", \"" + most + "x\"]"),
              HasSubstr("a string of more than 16777216 bytes from byte 5 "));
  // One that does not end.
  EXPECT_THAT(Refused("\"" + most + "x"), HasSubstr("a string"));
}

TEST(KserveJsonTokensTest, AnEscapedQuoteEndsNoString) {
  std::string text;
  while (text.size() < kMaxJsonStringBytes) text += "\\\"\\\\";
  EXPECT_THAT(Refused("\"" + text + "\""), HasSubstr("a string"));
  // After an escaped backslash it does.
  EXPECT_TRUE(CheckJsonTokens("\"\\\\\"" + std::string(1024, '1')).ok());
  EXPECT_FALSE(CheckJsonTokens("\"\\\"" + text).ok());
}

TEST(KserveJsonTokensTest, OtherWordsHaveALimit) {
  const std::string most(kMaxJsonWordBytes, '9');
  EXPECT_TRUE(CheckJsonTokens(absl::StrCat("[", most, ",", most, "\n", most,
                                           "]{", most, ":", most, "}"))
                  .ok());
  EXPECT_THAT(Refused(absl::StrCat("[1, ", most, "9]")),
              HasSubstr("a word of more than 1024 bytes from byte 4 "));
}

TEST(KserveJsonTokensTest, WhatIsNoJsonIsTheParsersToRefuse) {
  for (const char* json : {"", "\"", "\"\\", "{]", "\xff\x00"}) {
    EXPECT_TRUE(CheckJsonTokens(json).ok()) << json;
  }
}

}  // namespace
}  // namespace sfmamba::rest
