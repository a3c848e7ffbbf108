#include <map>
#include <string>

#include "gtest/gtest.h"
#include "server/http/request_reader.h"

namespace sfmamba::http {
namespace {

using Query = std::multimap<std::string, std::string>;

TEST(RequestTargetTest, IsAPathAndAQuery) {
  struct Case {
    const char* target;
    const char* path;
    Query query;
  };
  const Case cases[] = {
      {"/", "/", {}},
      {"*", "*", {}},
      {"/a%20b+c", "/a b+c", {}},
      {"/a?", "/a", {}},
      {"/a?b", "/a", {{"b", ""}}},
      {"/a?b=c+d%2B&b=e&&f==g?h",
       "/a",
       {{"b", "c d+"}, {"b", "e"}, {"f", "=g?h"}}},
      {"/a?b+c=d", "/a", {{"b c", "d"}}},
      {"/a?b=%0A", "/a", {{"b", "\n"}}},
      {"/a#b?c", "/a", {}},
      {"/a%zz%4", "/a%zz%4", {}},
      {"http://h:1/a?b", "/a", {{"b", ""}}},
      {"https://h?b", "", {{"b", ""}}},
      {"http://h", "/", {}},
      {"/v1/models/a:classify", "/v1/models/a:classify", {}},
  };
  for (const Case& c : cases) {
    std::string path;
    Query query;
    EXPECT_TRUE(ParseTarget(c.target, &path, &query)) << c.target;
    EXPECT_EQ(path, c.path) << c.target;
    EXPECT_EQ(query, c.query) << c.target;
  }
}

TEST(RequestTargetTest, HasNoControlCharacters) {
  for (const char* target :
       {"", "/a b", "/\x01", "/\x7f", "/\xc3\xa4", "/%00", "/%0a", "/%7F"}) {
    std::string path;
    Query query;
    EXPECT_FALSE(ParseTarget(target, &path, &query)) << target;
  }
}

}  // namespace
}  // namespace sfmamba::http
