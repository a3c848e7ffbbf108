#include "server/prediction/sliding/sliding_map.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/allocations.h"
#include "tests/testing/fixture.h"

namespace sfmamba::prediction {
namespace {

using image::PictureSize;

std::vector<int64_t> Values(const at::Tensor& tensor) {
  const int64_t* data = tensor.const_data_ptr<int64_t>();
  return {data, data + tensor.numel()};
}

TEST(SlideGridTest, WindowsAreThoseOfMmsegmentation) {
  const Fixture fixture("upernet");
  const std::vector<int64_t> size = Values(fixture["in.img_shape"]);
  const std::vector<int64_t> slide = Values(fixture["slide.crop_stride"]);
  const int window = slide[0], stride = slide[1];
  const SlideGrid grid({static_cast<int>(size[0]), static_cast<int>(size[1])},
                       {window, window}, {stride, stride});
  std::vector<int64_t> edges;
  for (int i = 0; i < grid.windows(); ++i) {
    const image::PixelRect region = grid.Region(i);
    for (const int edge : {region.top, region.left, region.top + region.height,
                           region.left + region.width}) {
      edges.push_back(edge);
    }
  }
  EXPECT_EQ(edges, Values(fixture["slide.windows"]));
}

TEST(SlideGridTest, AWindowIsCutToThePicture) {
  const SlideGrid grid({30, 50}, {64, 20}, {60, 15});
  EXPECT_EQ(grid.rows(), 1);
  EXPECT_EQ(grid.columns(), 3);
  EXPECT_EQ(grid.window().height, 30);
  EXPECT_EQ(grid.window().width, 20);
  EXPECT_EQ(grid.Left(2), 30);
  EXPECT_EQ(grid.MostKept(), 3);
}

TEST(SlideGridTest, TheRowsThatCoverAPixelAreKeptAndOneMore) {
  const SlideGrid grid({96, 40}, {16, 16}, {8, 8});
  EXPECT_EQ(grid.rows(), 11);
  EXPECT_EQ(grid.columns(), 4);
  // A pixel lies in two rows of windows, or in three if the last row of windows
  // is moved inwards. The map may need two neighbouring rows of pixels at once,
  // so one more row of windows is kept.
  EXPECT_EQ(grid.MostKept(), (3 + 1) * 4);
  // This grid has only two rows of windows.
  EXPECT_EQ(SlideGrid({20, 40}, {16, 16}, {8, 8}).MostKept(), 2 * 4);
}

// A recorded case: see tools/pytorch/record_slide.py.
struct Case {
  explicit Case(int i) : fixture("slide"), name(absl::StrCat(i, ".")) {
    const std::vector<int64_t> sizes = Values(fixture[name + "sizes"]);
    for (int k = 0; k < 4; ++k) {
      size[k] = {static_cast<int>(sizes[2 * k]),
                 static_cast<int>(sizes[2 * k + 1])};
    }
    logits = fixture[name + "logits"].permute({0, 2, 3, 1}).contiguous();
  }

  SlideGrid grid() const { return SlideGrid(size[0], size[1], size[2]); }
  int classes() const { return logits.size(3); }
  model::Segmentation Logits(int window) const {
    const at::Tensor own = logits[window];
    model::Segmentation result;
    result.height = own.size(0);
    result.width = own.size(1);
    const float* data = own.const_data_ptr<float>();
    result.logits.assign(data, data + own.numel());
    return result;
  }
  SlidingMap MakeMap() const {
    return SlidingMap(grid(), classes(), size[3], /*confidence=*/true);
  }
  void ExpectRecorded(const model::Segmentation& map) const {
    const at::Tensor labels = fixture[name + "map"];
    const at::Tensor confidence = fixture[name + "confidence"];
    ASSERT_EQ(map.labels.size(), labels.numel());
    ASSERT_EQ(map.confidence.size(), labels.numel());
    std::vector<int64_t> areas(classes());
    for (int64_t i = 0; i < labels.numel(); ++i) {
      ++areas[map.labels[i]];
      ASSERT_EQ(map.labels[i], labels.const_data_ptr<uint8_t>()[i]) << i;
      ASSERT_NEAR(map.confidence[i], confidence.const_data_ptr<uint8_t>()[i], 1)
          << i;
    }
    EXPECT_EQ(map.areas, areas);
  }

  const Fixture fixture;
  const std::string name;
  // The sizes of picture, window, stride and map.
  std::array<PictureSize, 4> size;
  at::Tensor logits;  // [windows, h, w, classes]
};

TEST(SlidingMapTest, IsTheReferencesInAnyOrder) {
  std::mt19937 random(1);
  for (const int i : {0, 1, 2}) {
    SCOPED_TRACE(i);
    const Case recorded(i);
    const SlideGrid grid = recorded.grid();
    ASSERT_EQ(grid.windows(), recorded.logits.size(0));
    SlidingMap map = recorded.MakeMap();
    std::vector<int> order(grid.windows());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    for (const int window : order) {
      EXPECT_FALSE(map.done());
      map.Add(window, recorded.Logits(window));
      while (map.IsReady()) map.ComputeNext();
    }
    ASSERT_TRUE(map.done());
    recorded.ExpectRecorded(map.Take());
  }
}

// Whenever the map wants more windows, the test adds all of them, the last one
// first. In this order, the map must keep all of them until the first one
// arrives.
TEST(SlidingMapTest, KeepsNoMoreThanItSays) {
  const PictureSize picture = {96, 40}, window = {16, 16};
  for (const int stride : {1, 3, 8, 15, 16}) {
    SCOPED_TRACE(stride);
    const SlideGrid grid(picture, window, {stride, 8});
    SlidingMap map(grid, /*classes=*/2, {31, 57}, /*confidence=*/false);
    int64_t wanted = 0;
    while (!map.done()) {
      const int64_t begin = wanted;
      wanted = map.Wanted();
      ASSERT_GT(wanted, begin) << "it waits for what is not wanted";
      ASSERT_LE(wanted, begin == 0 ? grid.MostKept() : grid.windows());
      for (int64_t i = wanted - 1; i >= begin; --i) {
        model::Segmentation logits;
        logits.height = logits.width = 4;
        logits.logits.assign(4 * 4 * 2, i);
        map.Add(i, std::move(logits));
      }
      while (map.IsReady()) map.ComputeNext();
    }
    EXPECT_EQ(wanted, grid.windows());
    EXPECT_EQ(map.Take().areas[0], 31 * 57);
  }
}

TEST(SlidingMapTest, WindowsMayComeWhileRowsAreComputed) {
  const Case recorded(0);
  SlidingMap map = recorded.MakeMap();
  std::thread model([&] {
    for (int i = 0; i < recorded.grid().windows(); ++i) {
      map.Add(i, recorded.Logits(i));
    }
  });
  while (!map.done()) {
    if (map.IsReady()) map.ComputeNext();
  }
  model.join();
  recorded.ExpectRecorded(map.Take());
}

// AddressSanitizer would find a read past the last row.
TEST(SlidingMapTest, AnyThreadMayAskWhileTheLastRowsAreComputed) {
  std::deque<SlidingMap> maps;
  std::atomic<const SlidingMap*> asked{nullptr};
  std::atomic<bool> end{false};
  std::thread batch([&] {
    while (!end) {
      const SlidingMap* const map = asked;
      if (map != nullptr) map->IsReady();
    }
  });
  const SlideGrid grid({4, 4}, {4, 4}, {4, 4});
  for (int round = 0; round < 20'000; ++round) {
    SlidingMap& map =
        maps.emplace_back(grid, /*classes=*/2, PictureSize{2, 2}, false);
    model::Segmentation logits;
    logits.height = logits.width = 1;
    logits.logits.assign(2, 1);
    map.Add(0, std::move(logits));
    asked = &map;
    while (!map.done()) map.ComputeNext();
  }
  end = true;
  batch.join();
  EXPECT_FALSE(maps.back().IsReady());
}

TEST(SlidingMapTest, ASmallMapIsOnePart) {
  const SlideGrid grid({64, 64}, {64, 64}, {64, 64});
  SlidingMap map(grid, /*classes=*/2, {100, 100}, false);
  model::Segmentation logits;
  logits.height = logits.width = 16;
  logits.logits.assign(16 * 16 * 2, 1);
  map.Add(0, std::move(logits));
  EXPECT_GT(map.NextCost(), SlidingMap::Cost(grid, 2, {100, 100}) / 10 * 9);
  EXPECT_LE(map.NextCost(), SlidingMap::Cost(grid, 2, {100, 100}));
  map.ComputeNext();
  EXPECT_TRUE(map.done());
  EXPECT_EQ(map.NextCost(), absl::ZeroDuration());
}

TEST(SlidingMapTest, ItsCostGrowsWithWindowsPixelsAndClasses) {
  const SlideGrid grid({2048, 2048}, {512, 512}, {512, 512});
  const SlideGrid dense({2048, 2048}, {512, 512}, {128, 128});
  const auto cost = [](const SlideGrid& grid, int classes, int side) {
    return SlidingMap::Cost(grid, classes, {side, side});
  };
  EXPECT_GT(cost(grid, 1, 1), absl::ZeroDuration());
  EXPECT_GT(cost(dense, 150, 1), 10 * cost(grid, 150, 1));
  EXPECT_GT(cost(grid, 150, 6000), 5 * cost(grid, 150, 1));
  EXPECT_GT(cost(grid, 1500, 1), 5 * cost(grid, 150, 1));
  EXPECT_LT(cost(grid, 1500, 1), 10 * cost(grid, 150, 1));
}

// Compares Bytes() with what the map allocates while windows arrive.
TEST(SlidingMapTest, TakesTheMemoryThatItSays) {
  const struct {
    PictureSize picture, window, stride;
    int classes;
  } cases[] = {
      {{256, 256}, {65, 66}, {32, 32}, 40},  // Logits take most memory.
      {{64, 64}, {13, 14}, {6, 6}, 40},      // The windows are small.
      {{60, 60}, {4, 4}, {1, 1}, 2},         // There are many windows.
      {{8, 4000}, {8, 4000}, {8, 8}, 100},   // The rows are long.
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.classes);
    const SlideGrid grid(c.picture, c.window, c.stride);
    const int height = (c.window.height + 3) / 4;
    const int width = (c.window.width + 3) / 4;
    const int64_t peak = PeakOfHeap([&] {
      SlidingMap map(grid, c.classes, {8, 8}, /*confidence=*/false);
      for (int64_t done = 0; !map.done();) {
        for (const int64_t wanted = map.Wanted(); done < wanted; ++done) {
          model::Segmentation logits;
          logits.height = height;
          logits.width = width;
          logits.logits.assign(int64_t{1} * height * width * c.classes, 1);
          map.Add(done, std::move(logits));
        }
        while (map.IsReady()) map.ComputeNext();
      }
    });
    EXPECT_GE(SlidingMap::Bytes(grid, c.classes), peak / 10 * 8);
    EXPECT_LE(SlidingMap::Bytes(grid, c.classes), peak * 2);
  }
}

TEST(SlidingMapTest, KeepsNothingOnceTheMapIsTaken) {
  const SlideGrid grid({8, 4000}, {8, 4000}, {8, 8});
  SlidingMap map(grid, /*classes=*/100, {8, 8}, /*confidence=*/false);
  model::Segmentation logits;
  logits.height = 2;
  logits.width = 1000;
  logits.logits.assign(2 * 1000 * 100, 1);
  map.Add(0, std::move(logits));
  while (map.IsReady()) map.ComputeNext();
  ASSERT_TRUE(map.done());
  // The map has stored the mean logits of two rows of the picture, which take
  // kMeans bytes. Take() frees them, so `other` does not raise the peak.
  constexpr int64_t kMeans = 2 * 4000 * 100 * sizeof(float);
  model::Segmentation taken;
  const int64_t peak = PeakOfHeap([&] {
    taken = map.Take();
    const std::string other(kMeans, 'x');
    EXPECT_EQ(other.back(), 'x');
  });
  EXPECT_LT(peak, kMeans / 2);
  EXPECT_EQ(taken.areas[0], 64);
}

TEST(SlidingMapTest, TakesPartsOfSomeMilliseconds) {
  // The grid has 64 windows of 512 x 512 pixels, and there are 150 classes.
  const SlideGrid grid({2048, 2048}, {512, 512}, {220, 220});
  SlidingMap map(grid, 150, {3000, 4000}, false);
  EXPECT_LE(map.NextCost(), absl::Milliseconds(20));
  EXPECT_GE(map.NextCost(), absl::Milliseconds(2));
  EXPECT_GE(SlidingMap::Cost(grid, 150, {3000, 4000}), absl::Milliseconds(500));
  // A row of windows takes 8 * 128 * 128 * 150 floats.
  EXPECT_LT(SlidingMap::Bytes(grid, 150), int64_t{450} << 20);
}

}  // namespace
}  // namespace sfmamba::prediction
