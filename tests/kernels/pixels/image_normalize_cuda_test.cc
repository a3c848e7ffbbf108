#include "kernels/pixels/image_normalize_cuda.h"

#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/pixels/image_normalize.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/matrix.h"
#include "tests/testing/planes.h"

namespace sfmamba::kernels {
namespace {

constexpr std::array<float, 3> kMean = {0.485f, 0.456f, 0.406f};
constexpr std::array<float, 3> kStd = {0.229f, 0.224f, 0.225f};

struct Size {
  int height, width;
};

// The layout of values in y, and the size of y.
struct Strides {
  int64_t image, row, pixel, channel, values;
};

Strides Planes(int64_t count, int64_t height, int64_t width) {
  return {3 * height * width, width, 1, height * width,
          count * 3 * height * width};
}

Strides Pixels(int64_t count, int64_t height, int64_t width) {
  return {3 * height * width, 3 * width, 3, 1, count * 3 * height * width};
}

// Returns strides of rows with a gap after each.
Strides Apart(int64_t count, int64_t height, int64_t width) {
  return {3 * height * (width + 5), width + 5, 1, height * (width + 5),
          count * 3 * height * (width + 5)};
}

// A batch of random images. Its pixels begin `skew` bytes after an aligned
// address.
struct Batch {
  Batch(const std::vector<Size>& sizes, int height, int width, int skew)
      : sizes(sizes), height(height), width(width) {
    std::mt19937 random(1);
    rgb.resize(skew);
    for (const Size& size : sizes) {
      begins.push_back(rgb.size());
      for (int b = 0; b < 3 * size.height * size.width; ++b) {
        rgb.push_back(static_cast<uint8_t>(random()));
      }
    }
  }

  // Returns the pixels as they are stored. Planar images are stored as planes.
  std::vector<uint8_t> Stored() const {
    std::vector<uint8_t> stored = rgb;
    for (size_t n = 0; n < planar.size(); ++n) {
      if (planar[n] == 0) continue;
      const auto begin = rgb.begin() + begins[n];
      const std::vector<uint8_t> planes =
          PlanesOf({begin, begin + 3 * sizes[n].height * sizes[n].width});
      std::copy(planes.begin(), planes.end(), stored.begin() + begins[n]);
    }
    return stored;
  }

  // Runs the kernel on a copy of `y` and returns this copy.
  template <typename T>
  std::vector<T> Run(const Strides& strides, const std::vector<T>& y) const {
    const DeviceArray<uint8_t> device_rgb(Stored()), device_planar(planar);
    const DeviceArray<T> device_y(y);
    std::vector<CudaImage> images;
    for (size_t n = 0; n < sizes.size(); ++n) {
      images.push_back(
          {device_rgb.data() + begins[n], sizes[n].height, sizes[n].width});
    }
    EXPECT_TRUE(ImageNormalizeCuda<T>(
                    {static_cast<int>(sizes.size()), images.data(), height,
                     width, device_y.data(), strides.image, strides.row,
                     strides.pixel, strides.channel, kMean, kStd,
                     planar.empty() ? nullptr : device_planar.data()},
                    TestStream())
                    .ok());
    EXPECT_TRUE(device_y.GuardsIntact());
    EXPECT_TRUE(device_rgb.GuardsIntact());
    return device_y.ToHost();
  }

  // Returns the result of ImageNormalizeCpu, rounded to T.
  template <typename T>
  std::vector<T> Reference(const Strides& strides, std::vector<T> y) const {
    for (size_t n = 0; n < sizes.size(); ++n) {
      const int64_t h = sizes[n].height, w = sizes[n].width;
      std::vector<float> values(3 * h * w);
      ImageNormalizeCpu<float>({h, w, rgb.data() + begins[n], values.data(),
                                3 * w, 3, 1, kMean, kStd});
      for (int64_t i = 0; i < height; ++i) {
        for (int64_t j = 0; j < width; ++j) {
          for (int64_t c = 0; c < 3; ++c) {
            const bool inside = i < h && j < w;
            const float value = inside ? values[(i * w + j) * 3 + c] : 0.0f;
            y[n * strides.image + i * strides.row + j * strides.pixel +
              c * strides.channel] = static_cast<T>(value);
          }
        }
      }
    }
    return y;
  }

  std::vector<Size> sizes;
  int height, width;
  std::vector<uint8_t> rgb;
  std::vector<size_t> begins;
  std::vector<uint8_t> planar;  // Empty, or one entry per image.
};

template <typename T>
void ExpectTheSameBits(const Batch& batch, const Strides& strides) {
  std::mt19937 random(2);
  std::vector<T> y(strides.values);
  for (T& value : y) value = static_cast<T>(static_cast<float>(random() % 99));
  const std::vector<T> got = batch.Run(strides, y);
  const std::vector<T> expected = batch.Reference(strides, y);
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), y.size() * sizeof(T)), 0)
      << batch.height << "x" << batch.width;
}

template <typename T>
class ImageNormalizeCudaTest : public DeviceTest {};
TYPED_TEST_SUITE(ImageNormalizeCudaTest, ElementTypes);

TYPED_TEST(ImageNormalizeCudaTest, HasTheCpusBitsInEveryLayout) {
  for (const Size& size :
       {Size{1, 1}, Size{3, 4}, Size{17, 132}, Size{18, 131}, Size{40, 129}}) {
    for (int skew : {0, 1}) {
      Batch batch({size, size}, size.height, size.width, skew);
      for (auto layout : {Planes, Pixels, Apart}) {
        for (const std::vector<uint8_t>& planar :
             {std::vector<uint8_t>{}, {0, 0}, {0, 1}, {1, 0}, {1, 1}}) {
          batch.planar = planar;
          ExpectTheSameBits<TypeParam>(batch,
                                       layout(2, size.height, size.width));
        }
      }
    }
  }
}

// Returns strides of rows that are whole vectors. The second image begins
// between two vectors.
Strides ImagesApart(int64_t count, int64_t height, int64_t width) {
  Strides strides = Planes(count, height, width);
  strides.image += 1;
  strides.values += count;
  return strides;
}

// Returns strides of rows that are whole vectors. The second channel begins
// between two vectors.
Strides PlanesApart(int64_t count, int64_t height, int64_t width) {
  Strides strides = Planes(count, height, width);
  strides.channel += 1;
  strides.image += 4;
  strides.values += 4 * count;
  return strides;
}

TYPED_TEST(ImageNormalizeCudaTest, ImagesAndPlanesMayLieAtAnyAddress) {
  const Batch batch({{6, 16}, {6, 16}, {5, 9}}, 6, 16, 0);
  for (auto layout : {ImagesApart, PlanesApart}) {
    ExpectTheSameBits<TypeParam>(batch, layout(3, 6, 16));
  }
}

TYPED_TEST(ImageNormalizeCudaTest, FillsTheRestOfAPlaceWithZeros) {
  Batch batch({{20, 36}, {7, 40}, {24, 5}, {1, 1}}, 24, 40, 0);
  for (auto layout : {Planes, Pixels, Apart}) {
    batch.planar = {};
    ExpectTheSameBits<TypeParam>(batch, layout(4, 24, 40));
    batch.planar = {1, 1, 1, 1};
    ExpectTheSameBits<TypeParam>(batch, layout(4, 24, 40));
  }
}

// There are more images than one launch takes.
TYPED_TEST(ImageNormalizeCudaTest, TakesManyImages) {
  std::vector<Size> sizes;
  for (int n = 0; n < 130; ++n) sizes.push_back({1 + n % 3, 1 + n % 4});
  Batch batch(sizes, 3, 4, 0);
  ExpectTheSameBits<TypeParam>(batch, Planes(130, 3, 4));
  for (int n = 0; n < 130; ++n) batch.planar.push_back(n % 5 < 2);
  ExpectTheSameBits<TypeParam>(batch, Planes(130, 3, 4));
}

TYPED_TEST(ImageNormalizeCudaTest, EveryByteHasTheCpusBits) {
  Batch batch({{3, 256}}, 3, 256, 0);
  for (int i = 0; i < 3 * 256; ++i) {
    for (int c = 0; c < 3; ++c) batch.rgb[3 * i + c] = (i + 85 * c) % 256;
  }
  ExpectTheSameBits<TypeParam>(batch, Planes(1, 3, 256));
}

}  // namespace
}  // namespace sfmamba::kernels
