#include "base/utf8.h"

#include <iterator>
#include <string>

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

TEST(Utf8Test, MendsWhatIsNotUtf8) {
  EXPECT_EQ(ToUtf8("a\xc3\xa9"), "a\xc3\xa9");
  EXPECT_EQ(ToUtf8("\xc3\xe2\x82z"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
}

TEST(Utf8Test, CutsBetweenCharacters) {
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
  const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (size_t i = 0; i < std::size(ends); ++i) {
    EXPECT_EQ(Utf8Prefix(text, i), text.substr(0, ends[i])) << i;
  }
  EXPECT_EQ(Utf8Prefix("", 3), "");
  // Text that is not UTF-8 is shortened too.
  EXPECT_LE(Utf8Prefix(std::string(9, '\x80'), 5).size(), 5);
}

}  // namespace
}  // namespace sfmamba::base
