#include "server/shares/client_shares.h"

#include <string>
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

// A resource of a hundred places. Clients take single places until they are
// refused.
class Places {
 public:
  explicit Places(double most_alone) : shares_(most_alone) {}

  bool Take(const std::string& client) {
    const int64_t free = 100 - static_cast<int64_t>(taken_.size());
    const bool is_taken = shares_.Take(client, 1, free);
    if (is_taken) taken_.push_back(client);
    return is_taken;
  }
  int held(const std::string& client) { return shares_.HeldBy(client); }
  int clients() { return shares_.clients(); }
  void GiveAllBack() {
    for (const std::string& client : taken_) shares_.GiveBack(client, 1);
  }

 private:
  ClientShares shares_;
  // For each place that is taken, the client that holds it.
  std::vector<std::string> taken_;
};

TEST(ClientSharesTest, OneClientAloneFillsItsMost) {
  Places places(0.8);
  while (places.Take("a")) {
  }
  EXPECT_EQ(places.held("a"), 80);
}

TEST(ClientSharesTest, TheMostAloneLeavesItsShareFree) {
  for (const double share : {0.5, 0.8, 0.9, 0.99}) {
    const ClientShares shares(share);
    for (const int64_t all : {int64_t{1}, int64_t{1000}, int64_t{512} << 20,
                              (int64_t{1} << 50) + 1}) {
      const int64_t most = shares.MostAlone(all);
      EXPECT_TRUE(shares.IsShare(most, all - most)) << share << " of " << all;
      EXPECT_NEAR(most, share * all, 1 + 1e-12 * all);
    }
  }
  EXPECT_EQ(ClientShares(0.8).MostAlone(1000), 800);
  EXPECT_EQ(ClientShares(1).MostAlone(1000), 1000);
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
  places.GiveAllBack();
  EXPECT_EQ(places.held("a"), 0);
  EXPECT_EQ(places.clients(), 0);
}

TEST(ClientSharesTest, AFirstRequestFitsIfItFitsAtAll) {
  ClientShares shares(0.5);
  EXPECT_TRUE(shares.Take("a", 100, 100));
  EXPECT_FALSE(shares.Take("b", 101, 100));
}

TEST(ClientSharesTest, OneMeansNoLimit) {
  ClientShares shares(1);
  EXPECT_TRUE(shares.Take("a", 100, 100));
  EXPECT_TRUE(shares.Take("a", 100, 0));
  EXPECT_TRUE(shares.Take("a", 100, -5));
}

TEST(ClientSharesTest, NothingIsAlwaysTaken) {
  ClientShares shares(0.5);
  EXPECT_TRUE(shares.Take("a", 0, 0));
  EXPECT_EQ(shares.clients(), 0);
}

}  // namespace
}  // namespace sfmamba::server
