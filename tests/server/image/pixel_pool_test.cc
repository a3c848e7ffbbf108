#include "server/image/pixel_pool.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::image {
namespace {

TEST(PixelPoolTest, GivesBackWhatItWasGiven) {
  PixelPool pool(12, 4);
  std::vector<uint8_t> pixels = pool.Take(12);
  const uint8_t* const data = pixels.data();
  EXPECT_EQ(pixels.size(), 12u);
  pool.Give(std::move(pixels));
  EXPECT_EQ(pool.Take(12).data(), data);
}

TEST(PixelPoolTest, OtherSizesAreMadeAndNotKept) {
  PixelPool pool(12, 4);
  std::vector<uint8_t> pixels = pool.Take(12);
  const uint8_t* const data = pixels.data();
  pool.Give(std::vector<uint8_t>(11));
  pool.Give({});
  pool.Give(std::move(pixels));
  EXPECT_EQ(pool.Take(11).size(), 11u);
  EXPECT_EQ(pool.Take(0).size(), 0u);
  EXPECT_EQ(pool.Take(12).data(), data);
}

TEST(PixelPoolTest, KeepsNoMoreThanItMay) {
  PixelPool pool(1, 2);
  std::vector<std::vector<uint8_t>> taken;
  for (uint8_t i = 0; i < 3; ++i) taken.push_back(pool.Take(1));
  for (uint8_t i = 0; i < 3; ++i) {
    taken[i][0] = 7 + i;
    pool.Give(std::move(taken[i]));
  }
  EXPECT_EQ(pool.Take(1)[0], 8);
  EXPECT_EQ(pool.Take(1)[0], 7);
  EXPECT_EQ(pool.Take(1)[0], 0) << "the third was freed, this one is new";
}

TEST(PixelPoolTest, NeverGivesOneToTwo) {
  PixelPool pool(64, 3);
  std::vector<std::thread> threads;
  for (uint8_t id = 0; id < 4; ++id) {
    threads.emplace_back([&pool, id] {
      for (int i = 0; i < 2000; ++i) {
        std::vector<uint8_t> pixels = pool.Take(64);
        pixels.assign(64, id);
        std::this_thread::yield();
        ASSERT_EQ(pixels, std::vector<uint8_t>(64, id));
        pool.Give(std::move(pixels));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sfmamba::image
