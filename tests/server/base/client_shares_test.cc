#include "server/base/client_shares.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

TEST(ClientOfTest, IsTheAddressWithoutThePort) {
  EXPECT_EQ(ClientOf("ipv4:10.0.0.1:1000"), "ipv4:10.0.0.1");
  EXPECT_EQ(ClientOf("ipv6:%5B::1%5D:1000"), "ipv6:%5B::1%5D");
  EXPECT_EQ(ClientOf(""), "");
}

// A hundred places that clients take one by one until they are refused.
class Places {
 public:
  explicit Places(double most_alone) : shares_(most_alone) {}

  bool Take(const std::string& client) {
    std::optional<ClientShares::Hold> hold =
        shares_.Take(client, 1, 100 - static_cast<int64_t>(holds_.size()));
    if (hold.has_value()) holds_.push_back(*std::move(hold));
    return hold.has_value();
  }
  int held(const std::string& client) { return shares_.HeldBy(client); }
  int clients() { return shares_.clients(); }
  void ReleaseAll() { holds_.clear(); }

 private:
  ClientShares shares_;
  std::vector<ClientShares::Hold> holds_;
};

TEST(ClientSharesTest, OneClientAloneFillsItsMost) {
  Places places(0.8);
  while (places.Take("a")) {
  }
  EXPECT_EQ(places.held("a"), 80);
}

TEST(ClientSharesTest, ANewClientFindsRoom) {
  Places places(0.8);
  while (places.Take("a")) {
  }
  EXPECT_TRUE(places.Take("b"));
}

TEST(ClientSharesTest, GreedyClientsGetEqualSharesAndLeaveSome) {
  Places places(0.8);
  for (bool any = true; any;) {
    any = false;
    for (int client = 0; client < 9; ++client) {
      any |= places.Take(absl::StrCat(client));
    }
  }
  int all = 0;
  for (int client = 0; client < 9; ++client) {
    const int held = places.held(absl::StrCat(client));
    EXPECT_NEAR(held, 400. / 37, 1) << client;
    all += held;
  }
  EXPECT_LT(all, 100);
}

TEST(ClientSharesTest, WhatIsGivenBackIsForgotten) {
  Places places(0.8);
  EXPECT_TRUE(places.Take("a"));
  EXPECT_TRUE(places.Take("b"));
  EXPECT_EQ(places.clients(), 2);
  places.ReleaseAll();
  EXPECT_EQ(places.held("a"), 0);
  EXPECT_EQ(places.clients(), 0);
}

TEST(ClientSharesTest, AHoldThatMovedGivesBackOnce) {
  ClientShares shares(0.8);
  std::optional<ClientShares::Hold> first = shares.Take("a", 5, 100);
  ClientShares::Hold second = *std::move(first);
  first.reset();
  EXPECT_EQ(shares.HeldBy("a"), 5);
  second.Release();
  second.Release();
  EXPECT_EQ(shares.HeldBy("a"), 0);
}

TEST(ClientSharesTest, PartsOfAHoldAreGivenBackOneByOne) {
  ClientShares shares(0.8);
  ClientShares::Hold all = *shares.Take("a", 5, 100);
  ClientShares::Hold part = all.Split(2);
  ClientShares::Hold nothing = all.Split(0);
  all.Release();
  EXPECT_EQ(shares.HeldBy("a"), 2);
  part.Release();
  EXPECT_EQ(shares.clients(), 0);
  nothing.Release();
}

TEST(ClientSharesTest, AHoldMayOutliveTheShares) {
  ClientShares::Hold hold;
  {
    ClientShares shares(0.8);
    hold = *shares.Take("a", 5, 100);
  }
  hold.Release();
}

TEST(ClientSharesTest, AFirstRequestFitsIfItFitsAtAll) {
  ClientShares shares(0.5);
  EXPECT_TRUE(shares.Take("a", 100, 100).has_value());
  EXPECT_FALSE(shares.Take("b", 101, 100).has_value());
}

TEST(ClientSharesTest, OneMeansNoLimit) {
  ClientShares shares(1);
  const auto first = shares.Take("a", 100, 100);
  EXPECT_TRUE(shares.Take("a", 100, 0).has_value());
  EXPECT_TRUE(shares.Take("a", 100, -5).has_value());
}

TEST(ClientSharesTest, NothingIsAlwaysTaken) {
  ClientShares shares(0.5);
  EXPECT_TRUE(shares.Take("a", 0, 0).has_value());
  EXPECT_EQ(shares.clients(), 0);
}

}  // namespace
}  // namespace sfmamba::server
