#include "server/http/room.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace sfmamba::http {
namespace {

TEST(RoomTest, HoldsAtMostItsCapacityAndTakesItBack) {
  auto room = std::make_shared<Room>(100);
  Room::Hold first(room);
  EXPECT_TRUE(first.Take(60));
  EXPECT_TRUE(first.Take(10));
  {
    Room::Hold second(room);
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
}

TEST(RoomTest, AHoldMovesAndOutlivesItsUsers) {
  auto room = std::make_shared<Room>(100);
  Room::Hold to;
  {
    Room::Hold from(room);
    EXPECT_TRUE(from.Take(60));
    to = std::move(from);
  }
  EXPECT_EQ(room->held(), 60);
  EXPECT_EQ(to.bytes(), 60);
  to = Room::Hold(room);
  EXPECT_EQ(room->held(), 0);
}

}  // namespace
}  // namespace sfmamba::http
