#include "base/utf8.h"

#include "gtest/gtest.h"

namespace sfmamba::base {
namespace {

TEST(Utf8Test, CountsCharacters) {
  EXPECT_EQ(Utf8Length(""), 0);
  EXPECT_EQ(Utf8Length("abc"), 3);
  EXPECT_EQ(Utf8Length("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), 3);
}

TEST(Utf8Test, RefusesWhatIsNotUtf8) {
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80",
        "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "a\xff"}) {
    EXPECT_EQ(Utf8Length(bad), -1);
  }
}

}  // namespace
}  // namespace sfmamba::base
