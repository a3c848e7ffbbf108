#include "base/json.h"

#include "gtest/gtest.h"

namespace sfmamba::base {
namespace {

TEST(JsonStringTest, EscapesWhatMustBeEscaped) {
  EXPECT_EQ(JsonString(""), "\"\"");
  EXPECT_EQ(JsonString("\"\\\n\t\x01 é"),
            "\"\\\"\\\\\\u000a\\u0009\\u0001 é\"");
}

TEST(JsonStringTest, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(JsonString("a\xFF\xC3"), "\"a\\ufffd\\ufffd\"");
  EXPECT_EQ(JsonString(absl::string_view("\0", 1)), "\"\\u0000\"");
}

}  // namespace
}  // namespace sfmamba::base
