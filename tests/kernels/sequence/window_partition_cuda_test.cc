#include "kernels/sequence/window_partition_cuda.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sequence/token_mean.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

struct Shape {
  int images, map_height, map_width, height, width, channels, margin;

  int rows() const { return (map_height + height - 1) / height; }
  int columns() const { return (map_width + width - 1) / width; }
  int window_tokens() const { return height * width + 2 * margin; }
  int tokens() const { return images * rows() * columns() * window_tokens(); }
  int pixels() const { return images * map_height * map_width; }

  // Returns the map's pixel that token `i` holds, or -1 if it holds none.
  int PixelOf(int i) const {
    const int window = i / window_tokens();
    const int token = i % window_tokens() - margin;
    if (token < 0 || token >= height * width) return -1;
    const int image = window / (rows() * columns());
    const int place = window % (rows() * columns());
    const int row = place / columns() * height + token / width;
    const int column = place % columns() * width + token % width;
    if (row >= map_height || column >= map_width) return -1;
    return (image * map_height + row) * map_width + column;
  }
  bool IsAuxiliary(int i) const {
    const int token = i % window_tokens() - margin;
    return token < 0 || token >= height * width;
  }
};

constexpr Shape kShapes[] = {
    {2, 14, 14, 7, 7, 16, 1},  // Windows fill the map.
    {2, 15, 9, 7, 7, 20, 1},   // Windows reach beyond both sides.
    {1, 3, 5, 7, 9, 8, 0},     // One window is larger than the map.
    {2, 4, 6, 1, 1, 7, 2},     // Each window has one token.
    {3, 1, 1, 1, 1, 1, 0},     //
    {1, 5, 40, 2, 33, 66, 1},
    {1, 2, 3, 2, 2, 2056, 0},  // More vectors than threads in a block.
};

template <typename T, typename X>
WindowArgs<T, X> ArgsOf(const Shape& shape, const DeviceMatrix<T>& map,
                        const DeviceMatrix<X>& tokens) {
  WindowArgs<T, X> args{};
  args.images = shape.images;
  args.map_height = shape.map_height;
  args.map_width = shape.map_width;
  args.height = shape.height;
  args.width = shape.width;
  args.channels = shape.channels;
  args.map = map.data();
  args.pixel_stride = map.stride();
  args.row_stride = shape.map_width * map.stride();
  args.image_stride = shape.map_height * args.row_stride;
  args.tokens = tokens.data();
  args.token_stride = tokens.stride();
  args.margin = shape.margin;
  return args;
}

template <typename Pair>
class WindowCudaTest : public DeviceTest {};
using Pairs =
    testing::Types<std::pair<float, float>, std::pair<BFloat16, BFloat16>,
                   std::pair<Float16, Float16>, std::pair<BFloat16, float>,
                   std::pair<Float16, float>>;
TYPED_TEST_SUITE(WindowCudaTest, Pairs);

TYPED_TEST(WindowCudaTest, CutsMapsIntoWindows) {
  using T = typename TypeParam::first_type;
  using X = typename TypeParam::second_type;
  for (const Shape& shape : kShapes) {
    for (int padding : {8, 5}) {
      std::mt19937 random(1);
      Matrix<T> map(shape.pixels(), shape.channels, padding);
      map.FillNormal(random, 0, 1);
      Matrix<X> tokens(shape.tokens(), shape.channels, padding);
      tokens.FillNormal(random, 0, 1);
      Matrix<X> expected = tokens;
      for (int i = 0; i < shape.tokens(); ++i) {
        if (shape.IsAuxiliary(i)) continue;
        const int pixel = shape.PixelOf(i);
        for (int c = 0; c < shape.channels; ++c) {
          const float value =
              pixel < 0 ? 0.0f : static_cast<float>(map.at(pixel, c));
          expected.at(i, c) = static_cast<X>(value);
        }
      }
      const DeviceMatrix<T> device_map(map);
      const DeviceMatrix<X> device_tokens(tokens);
      ASSERT_TRUE(WindowPartitionCuda(ArgsOf(shape, device_map, device_tokens),
                                      TestStream())
                      .ok());
      EXPECT_TRUE(device_tokens.ToHost() == expected);
      EXPECT_TRUE(device_map.ToHost() == map);
    }
  }
}

// The windows must equal the windows of a partition without the mean. The
// auxiliary tokens at both ends of a window must equal the mean from the scalar
// loop.
TYPED_TEST(WindowCudaTest, WritesTheMeanToBothEnds) {
  using T = typename TypeParam::first_type;
  using X = typename TypeParam::second_type;
  for (Shape shape : std::vector<Shape>{{2, 14, 14, 7, 7, 16, 1},
                                        {2, 15, 9, 7, 7, 20, 1},
                                        {1, 14, 14, 14, 14, 72, 1},
                                        {1, 40, 35, 40, 35, 8, 1}}) {
    for (int padding : {8, 5}) {
      std::mt19937 random(1);
      Matrix<T> map(shape.pixels(), shape.channels, padding);
      map.FillNormal(random, 1, 1);
      const DeviceMatrix<T> device_map(map);
      const Matrix<X> empty(shape.tokens(), shape.channels, padding);
      const DeviceMatrix<X> without(empty), with(empty);
      WindowArgs<T, X> args = ArgsOf(shape, device_map, without);
      ASSERT_TRUE(WindowPartitionCuda(args, TestStream()).ok());
      args = ArgsOf(shape, device_map, with);
      args.mean = true;
      ASSERT_TRUE(WindowPartitionCuda(args, TestStream()).ok());
      Matrix<float> expected = ToFloats(without.ToHost());
      const int length = shape.window_tokens();
      TokenMeanArgs<float> mean{};
      mean.channels = shape.channels;
      mean.x = expected.data();
      mean.x_stride = expected.stride();
      mean.margin = 1;
      mean.mean = expected.data();
      mean.mean_stride = length * expected.stride();
      mean.copy = expected.data() + (length - 1) * expected.stride();
      mean.sequences = {shape.tokens() / length, length};
      TokenMeanScalar(mean);
      const Matrix<X> got = with.ToHost();
      for (int i = 0; i < shape.tokens(); ++i) {
        for (int c = 0; c < shape.channels; ++c) {
          ASSERT_EQ(static_cast<float>(got.at(i, c)),
                    static_cast<float>(static_cast<X>(expected.at(i, c))))
              << i << " " << c;
        }
      }
    }
  }
}

TYPED_TEST(WindowCudaTest, JoinsWindowsToMaps) {
  using T = typename TypeParam::first_type;
  using X = typename TypeParam::second_type;
  for (const Shape& shape : kShapes) {
    for (int padding : {8, 5}) {
      std::mt19937 random(1);
      Matrix<X> tokens(shape.tokens(), shape.channels, padding);
      tokens.FillNormal(random, 0, 1);
      const Matrix<T> map(shape.pixels(), shape.channels, padding);
      Matrix<T> expected = map;
      for (int i = 0; i < shape.tokens(); ++i) {
        const int pixel = shape.PixelOf(i);
        if (pixel < 0) continue;
        for (int c = 0; c < shape.channels; ++c) {
          expected.at(pixel, c) =
              static_cast<T>(static_cast<float>(tokens.at(i, c)));
        }
      }
      const DeviceMatrix<T> device_map(map);
      const DeviceMatrix<X> device_tokens(tokens);
      ASSERT_TRUE(WindowReverseCuda(ArgsOf(shape, device_map, device_tokens),
                                    TestStream())
                      .ok());
      EXPECT_TRUE(device_map.ToHost() == expected);
      EXPECT_TRUE(device_tokens.ToHost() == tokens);
    }
  }
}

// The map is the left part of a wider map. The distance between its rows in
// memory is therefore larger than its own width.
TYPED_TEST(WindowCudaTest, TakesRowsAnyDistanceApart) {
  using T = typename TypeParam::first_type;
  using X = typename TypeParam::second_type;
  const Shape whole{1, 6, 10, 3, 4, 16, 0}, part{1, 6, 8, 3, 4, 16, 0};
  std::mt19937 random(1);
  Matrix<T> map(whole.pixels(), 16, 8);
  map.FillNormal(random, 0, 1);
  const DeviceMatrix<T> device_map(map);
  const DeviceMatrix<X> tokens(Matrix<X>(part.tokens(), 16, 8));
  WindowArgs<T, X> args = ArgsOf(part, device_map, tokens);
  args.row_stride = whole.map_width * device_map.stride();
  ASSERT_TRUE(WindowPartitionCuda(args, TestStream()).ok());
  const Matrix<X> cut = tokens.ToHost();
  for (int i = 0; i < part.tokens(); ++i) {
    const int pixel = part.PixelOf(i);
    const int at = pixel / 8 * 10 + pixel % 8;
    for (int c = 0; c < 16; ++c) {
      ASSERT_EQ(static_cast<float>(cut.at(i, c)),
                static_cast<float>(map.at(at, c)));
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
