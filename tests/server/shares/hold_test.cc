#include "server/shares/hold.h"

#include <utility>

#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

// A resource that counts apples.
class Basket {
 public:
  struct Part {
    int apples = 0;

    Part Split(int some) {
      apples -= some;
      return {some};
    }
  };

  Hold<Basket> Take(int apples) {
    taken_ += apples;
    return Hold<Basket>(this, {apples});
  }
  void GiveBack(const Part& part) { taken_ -= part.apples; }
  bool Resize(int apples, Part* part) {
    if (apples > 10) return false;
    taken_ += apples - part->apples;
    part->apples = apples;
    return true;
  }

  int taken() const { return taken_; }

 private:
  int taken_ = 0;
};

TEST(HoldTest, GivesBackAsItEnds) {
  Basket basket;
  {
    const Hold<Basket> hold = basket.Take(5);
    EXPECT_EQ(basket.taken(), 5);
  }
  EXPECT_EQ(basket.taken(), 0);
}

TEST(HoldTest, GivesBackOnce) {
  Basket basket;
  Hold<Basket> first = basket.Take(5);
  const Hold<Basket> second = basket.Take(7);
  first.Release();
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(first->apples, 0);
  first.Release();
  Hold<Basket> moved = std::move(first);
  moved.Release();
  EXPECT_EQ(basket.taken(), 7);
}

TEST(HoldTest, MovesWhatItHolds) {
  Basket basket;
  Hold<Basket> from = basket.Take(5);
  const Hold<Basket> to = std::move(from);
  EXPECT_TRUE(from.empty());
  EXPECT_EQ((*to).apples, 5);
  EXPECT_EQ(basket.taken(), 5);
}

TEST(HoldTest, AssignmentGivesBackWhatWasHeld) {
  Basket first, second;
  Hold<Basket> hold = first.Take(5);
  hold = second.Take(7);
  EXPECT_EQ(first.taken(), 0);
  EXPECT_EQ(second.taken(), 7);
  hold = Hold<Basket>();
  EXPECT_EQ(second.taken(), 0);
}

TEST(HoldTest, PartsGoTheirOwnWay) {
  Basket basket;
  Hold<Basket> whole = basket.Take(5);
  Hold<Basket> part = whole.Split(2);
  EXPECT_EQ(whole->apples, 3);
  whole.Release();
  EXPECT_EQ(basket.taken(), 2);
  part.Release();
  EXPECT_EQ(basket.taken(), 0);
}

TEST(HoldTest, APartOfNothingIsEmpty) {
  Hold<Basket> nothing;
  EXPECT_TRUE(nothing.Split(1).empty());
  nothing.Release();
}

TEST(HoldTest, MayChangeItsSize) {
  Basket basket;
  {
    Hold<Basket> hold = basket.Take(5);
    EXPECT_TRUE(hold.Resize(7));
    EXPECT_FALSE(hold.Resize(11));
    EXPECT_EQ(hold->apples, 7);
    EXPECT_EQ(basket.taken(), 7);
  }
  EXPECT_EQ(basket.taken(), 0);
}

}  // namespace
}  // namespace sfmamba::server
