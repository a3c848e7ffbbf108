#include "server/image/pixel_pool.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::image {
namespace {

std::shared_ptr<uint8_t> Memory(size_t bytes) {
  return std::shared_ptr<uint8_t>(new uint8_t[bytes],
                                  std::default_delete<uint8_t[]>());
}

TEST(PixelPoolTest, GivesAgainWhatCameBack) {
  PixelPool pool(Memory(12), 12, 1);
  std::optional<Pixels> pixels = pool.Take(12);
  const uint8_t* const data = pixels->data();
  EXPECT_EQ(pixels->size(), 12u);
  EXPECT_TRUE(pixels->is_pooled());
  EXPECT_FALSE(pool.Take(12).is_pooled()) << "all are taken";
  std::optional<Pixels> moved = *std::move(pixels);
  pixels.reset();
  EXPECT_EQ(moved->data(), data);
  EXPECT_FALSE(pool.Take(12).is_pooled()) << "it was moved";
  moved.reset();
  EXPECT_EQ(pool.Take(12).data(), data);
}

TEST(PixelPoolTest, OtherSizesAreVectors) {
  PixelPool pool(Memory(12), 12, 1);
  for (const size_t bytes : {0, 11, 13}) {
    const Pixels pixels = pool.Take(bytes);
    EXPECT_EQ(pixels.size(), bytes);
    EXPECT_FALSE(pixels.is_pooled());
  }
  EXPECT_TRUE(pool.Take(12).is_pooled());
}

TEST(PixelPoolTest, HasNothingWithoutMemory) {
  PixelPool pool(nullptr, 12, 4);
  const Pixels pixels = pool.Take(12);
  EXPECT_FALSE(pixels.is_pooled());
  EXPECT_EQ(pixels.size(), 12u);
}

TEST(PixelPoolTest, MayGoBeforeWhatItGave) {
  auto pool = std::make_unique<PixelPool>(Memory(12), 12, 1);
  Pixels pixels = pool->Take(12);
  pool.reset();
  pixels.data()[11] = 7;
  EXPECT_EQ(pixels[11], 7);
}

TEST(PixelPoolTest, NeverGivesOneToTwo) {
  PixelPool pool(Memory(3 * 64), 64, 3);
  std::vector<std::thread> threads;
  for (uint8_t id = 0; id < 4; ++id) {
    threads.emplace_back([&pool, id] {
      for (int i = 0; i < 2000; ++i) {
        Pixels pixels = pool.Take(64);
        std::fill_n(pixels.data(), 64, id);
        std::this_thread::yield();
        ASSERT_EQ(std::count(pixels.begin(), pixels.end(), id), 64);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sfmamba::image
