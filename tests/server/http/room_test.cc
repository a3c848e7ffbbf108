#include "server/http/room.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace sfmamba::http {
namespace {

constexpr char kPeer[] = "ipv4:10.0.0.1:1000";

TEST(RoomTest, HoldsAtMostItsCapacityAndTakesItBack) {
  auto room = std::make_shared<Room>(100, 1);
  Room::Hold first(room, kPeer);
  EXPECT_TRUE(first.Take(60));
  EXPECT_TRUE(first.Take(10));
  {
    Room::Hold second(room, kPeer);
    EXPECT_FALSE(second.Take(31));
    EXPECT_EQ(room->held(), 70);
    EXPECT_TRUE(second.Take(30));
    second.TakeAnyway(1000);
    EXPECT_EQ(room->held(), 1100);
    EXPECT_FALSE(first.Take(1));
  }
  EXPECT_EQ(room->held(), 70);
  first.Release();
  EXPECT_EQ(room->held(), 0);
  EXPECT_EQ(first.bytes(), 0);
  EXPECT_TRUE(first.Take(100));
}

TEST(RoomTest, OneClientLeavesAPartForTheNext) {
  auto room = std::make_shared<Room>(100, 0.8);
  Room::Hold first(room, kPeer), more(room, "ipv4:10.0.0.1:2000");
  Room::Hold other(room, "ipv4:10.0.0.2:1000");
  EXPECT_FALSE(first.Take(90));
  EXPECT_TRUE(first.Take(70));
  EXPECT_TRUE(more.Take(10));
  EXPECT_FALSE(more.Take(1));
  EXPECT_EQ(room->held(), 80);
  EXPECT_TRUE(other.Take(10));
  first.Release();
  EXPECT_TRUE(more.Take(30));
}

TEST(RoomTest, AHoldMovesWithWhatItHolds) {
  auto room = std::make_shared<Room>(100, 1);
  Room::Hold to;
  {
    Room::Hold from(room, kPeer);
    EXPECT_TRUE(from.Take(60));
    to = std::move(from);
  }
  EXPECT_EQ(room->held(), 60);
  EXPECT_EQ(to.bytes(), 60);
  to = Room::Hold(room, kPeer);
  EXPECT_EQ(room->held(), 0);
}

}  // namespace
}  // namespace sfmamba::http
