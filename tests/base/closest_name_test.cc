#include "base/closest_name.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::base {
namespace {

const std::vector<std::string> kNames = {"port", "http_port", "tune", "top_k"};

TEST(ClosestNameTest, ASlipOfTheHandIsUnderstood) {
  EXPECT_EQ(ClosestName("ports", kNames), "port");
  EXPECT_EQ(ClosestName("prt", kNames), "port");
  EXPECT_EQ(ClosestName("pork", kNames), "port");
  EXPECT_EQ(ClosestName("http-port", kNames), "http_port");
  EXPECT_EQ(ClosestName("topk", kNames), "top_k");
  EXPECT_EQ(ClosestName("tpo_k", kNames), "top_k");
}

TEST(ClosestNameTest, OtherWordsAreNotGuessed) {
  EXPECT_EQ(ClosestName("", kNames), "");
  EXPECT_EQ(ClosestName("verbose", kNames), "");
  EXPECT_EQ(ClosestName("p", kNames), "");
  EXPECT_EQ(ClosestName("port", {}), "");
  EXPECT_EQ(ClosestName(std::string(1000, 'p'), kNames), "");
}

}  // namespace
}  // namespace sfmamba::base
