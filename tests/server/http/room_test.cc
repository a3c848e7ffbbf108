#include "server/http/room.h"

#include <utility>

#include "gtest/gtest.h"

namespace sfmamba::http {
namespace {

constexpr char kClient[] = "ipv4:10.0.0.1";

TEST(RoomTest, HoldsAtMostItsCapacityAndTakesItBack) {
  Room room(100, 1);
  Room::Hold first = room.MakeHold(kClient);
  EXPECT_TRUE(first.Resize(60));
  EXPECT_TRUE(first.Resize(70));
  {
    Room::Hold second = room.MakeHold(kClient);
    EXPECT_FALSE(second.Resize(31));
    EXPECT_EQ(room.held(), 70);
    EXPECT_TRUE(second.Resize(30));
    const Room::Hold more = room.TakeAnyway(1000);
    EXPECT_EQ(room.held(), 1100);
    EXPECT_FALSE(first.Resize(71));
  }
  EXPECT_EQ(room.held(), 70);
  first.Release();
  EXPECT_EQ(room.held(), 0);
  EXPECT_EQ(first->bytes, 0);
}

TEST(RoomTest, OneClientLeavesAPartForTheNext) {
  Room room(100, 0.8);
  Room::Hold first = room.MakeHold(kClient);
  Room::Hold more = room.MakeHold("ipv4:10.0.0.1");
  Room::Hold other = room.MakeHold("ipv4:10.0.0.2");
  EXPECT_FALSE(first.Resize(90));
  EXPECT_TRUE(first.Resize(70));
  EXPECT_TRUE(more.Resize(10));
  EXPECT_FALSE(more.Resize(11));
  EXPECT_EQ(room.held(), 80);
  EXPECT_TRUE(other.Resize(10));
  first.Release();
  EXPECT_TRUE(more.Resize(40));
}

TEST(RoomTest, WhatIsTakenAnywayCountsForNoClient) {
  Room room(100, 0.5);
  const Room::Hold anyway = room.TakeAnyway(20);
  Room::Hold hold = room.MakeHold("");
  EXPECT_TRUE(hold.Resize(40));
  EXPECT_FALSE(hold.Resize(41));
  hold.Release();
  EXPECT_EQ(room.held(), 20);
  EXPECT_TRUE(room.MakeHold("").Resize(40));
}

TEST(RoomTest, AHoldMovesWithWhatItHolds) {
  Room room(100, 1);
  Room::Hold to;
  {
    Room::Hold from = room.MakeHold(kClient);
    EXPECT_TRUE(from.Resize(60));
    to = std::move(from);
  }
  EXPECT_EQ(room.held(), 60);
  EXPECT_EQ(to->bytes, 60);
  to = room.MakeHold(kClient);
  EXPECT_EQ(room.held(), 0);
}

}  // namespace
}  // namespace sfmamba::http
