#include "server/image/resample.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sfmamba::image {
namespace {

using base::DecodeWatch;

std::vector<uint8_t> Noise(int width, int height, std::mt19937& random) {
  std::vector<uint8_t> rgb(size_t{3} * width * height);
  for (uint8_t& byte : rgb) byte = random();
  return rgb;
}

ResizeWindow Whole(int width, int height) {
  return {width, height, 0, 0, width, height};
}

// Cuts the window out of the complete result.
std::vector<uint8_t> Cut(const std::vector<uint8_t>& whole,
                         const ResizeWindow& window) {
  std::vector<uint8_t> part;
  for (int y = window.top; y < window.top + window.rows; ++y) {
    const uint8_t* row =
        &whole[size_t{3} * (size_t{1} * y * window.width + window.left)];
    part.insert(part.end(), row, row + 3 * window.columns);
  }
  return part;
}

TEST(ResampleTest, AWindowIsAPartOfTheWhole) {
  std::mt19937 random(1);
  const auto side = [&random](int most) {
    return 1 + static_cast<int>(random() % most);
  };
  for (int i = 0; i < 200; ++i) {
    const int width = side(90), height = side(90);
    ResizeWindow window =
        Whole(i % 5 == 0 ? width : side(70), i % 7 == 0 ? height : side(70));
    SCOPED_TRACE(testing::Message() << width << " x " << height << " to "
                                    << window.width << " x " << window.height);
    const std::vector<uint8_t> rgb = Noise(width, height, random);
    const auto whole = ResizeBicubic(rgb.data(), width, height, window);
    ASSERT_TRUE(whole.ok());
    ASSERT_EQ(whole->size(), size_t{3} * window.width * window.height);
    window.columns = side(window.width);
    window.rows = side(window.height);
    window.left = random() % (window.width - window.columns + 1);
    window.top = random() % (window.height - window.rows + 1);
    EXPECT_EQ(*ResizeBicubic(rgb.data(), width, height, window),
              Cut(*whole, window));
  }
}

TEST(ResampleTest, RowByRowItIsTheSame) {
  std::mt19937 random(3);
  const auto side = [&random](int most) {
    return 1 + static_cast<int>(random() % most);
  };
  for (int i = 0; i < 200; ++i) {
    const int width = side(90), height = side(90);
    ResizeWindow window =
        Whole(i % 5 == 0 ? width : side(70), i % 7 == 0 ? height : side(70));
    window.columns = side(window.width);
    window.rows = side(window.height);
    window.left = random() % (window.width - window.columns + 1);
    window.top = random() % (window.height - window.rows + 1);
    SCOPED_TRACE(testing::Message() << width << " x " << height << " to "
                                    << window.width << " x " << window.height);
    const std::vector<uint8_t> rgb = Noise(width, height, random);
    RowResizer resizer(width, height, window);
    for (int y = 0; y < height; ++y) {
      std::memcpy(resizer.Row(y), &rgb[size_t{3} * width * y],
                  size_t{3} * width);
    }
    EXPECT_EQ(resizer.Finish(),
              *ResizeBicubic(rgb.data(), width, height, window));
  }
}

// Holds a copy of `bytes` that ends exactly at the end of a memory page. The
// next page cannot be read, so a read past the end crashes.
class EndsAtAPage {
 public:
  explicit EndsAtAPage(const std::vector<uint8_t>& bytes) {
    const size_t page = sysconf(_SC_PAGESIZE);
    const size_t pages = (bytes.size() + page - 1) / page * page;
    size_ = pages + page;
    memory_ = static_cast<uint8_t*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(memory_ + pages, page, PROT_NONE), 0);
    data_ = memory_ + pages - bytes.size();
    std::memcpy(data_, bytes.data(), bytes.size());
  }
  ~EndsAtAPage() { munmap(memory_, size_); }

  const uint8_t* data() const { return data_; }

 private:
  uint8_t* memory_;
  uint8_t* data_;
  size_t size_;
};

TEST(ResampleTest, NothingBehindThePictureIsRead) {
  std::mt19937 random(2);
  for (const auto& [width, height] :
       {std::pair{1, 1}, {2, 3}, {5, 1}, {1, 9}, {7, 7}, {64, 5}, {301, 40}}) {
    const std::vector<uint8_t> rgb = Noise(width, height, random);
    const EndsAtAPage picture(rgb);
    for (const auto& [columns, rows] :
         {std::pair{1, 1}, {3, 8}, {8, 3}, {24, 24}, {width, 5}, {5, height}}) {
      const ResizeWindow window = Whole(columns, rows);
      EXPECT_EQ(*ResizeBicubic(picture.data(), width, height, window),
                *ResizeBicubic(rgb.data(), width, height, window));
    }
  }
}

// Resizes a large picture of one colour while `watch` is checked.
absl::StatusOr<std::vector<uint8_t>> ResizeLarge(const DecodeWatch& watch) {
  constexpr int kSide = 2500;
  const std::vector<uint8_t> rgb(3 * kSide * kSide, 9);
  return ResizeBicubic(rgb.data(), kSide, kSide, Whole(224, 224), watch);
}

TEST(ResampleTest, ALargePictureIsManyPieces) {
  int looks = 0;
  const DecodeWatch watch(absl::InfiniteDuration(), absl::ZeroDuration,
                          [&looks] { return ++looks > 0; });
  EXPECT_EQ(*ResizeLarge(watch), std::vector<uint8_t>(3 * 224 * 224, 9));
  EXPECT_GE(looks, 40);
  EXPECT_LE(looks, 60);
}

TEST(ResampleTest, NoPieceFollowsACancellation) {
  int looks = 0;
  const DecodeWatch watch(absl::InfiniteDuration(), absl::ZeroDuration,
                          [&looks] { return ++looks < 3; });
  EXPECT_EQ(ResizeLarge(watch).status().code(), absl::StatusCode::kCancelled);
  // The third look ends the resizing. Creating the status takes one more look.
  EXPECT_LE(looks, 4);
}

TEST(ResampleTest, NoPieceFollowsTheEndOfTheProcessorTime) {
  absl::Duration used;
  const DecodeWatch watch(absl::Milliseconds(10),
                          [&used] { return used += absl::Milliseconds(3); });
  EXPECT_EQ(ResizeLarge(watch).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_LE(used, absl::Milliseconds(21));
}

}  // namespace
}  // namespace sfmamba::image
