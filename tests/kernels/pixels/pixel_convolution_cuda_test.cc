#include "kernels/pixels/pixel_convolution_cuda.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/matrix.h"
#include "tests/testing/planes.h"

namespace sfmamba::kernels {
namespace {

constexpr double kTolerance = 1e-6;  // Relative to the largest output.
constexpr std::array<float, 3> kMean = {0.485f, 0.456f, 0.406f};
constexpr std::array<float, 3> kStd = {0.229f, 0.224f, 0.225f};

struct Size {
  int height, width;
};

// Returns the normalized values of an image, [height, width, 3].
std::vector<float> Normalized(const std::vector<uint8_t>& rgb) {
  std::vector<float> values(rgb.size());
  for (size_t b = 0; b < rgb.size(); ++b) {
    const float scaled = static_cast<float>(rgb[b]) / 255.0f;
    const float centred = scaled - kMean[b % 3];
    values[b] = centred / kStd[b % 3];
  }
  return values;
}

// Random images and weights of a convolution.
struct Problem {
  Problem(const std::vector<Size>& sizes, Size place, int channels)
      : sizes(sizes), place(place), channels(channels) {
    std::mt19937 random(1);
    for (const Size& size : sizes) {
      images.emplace_back(3 * size.height * size.width);
      for (uint8_t& byte : images.back()) byte = random();
    }
    weight = Normals(random, 27 * channels, 0, 0.4f);
    bias = Normals(random, channels, 0, 1);
  }

  int out_height() const { return (place.height + 1) / 2; }
  int out_width() const { return (place.width + 1) / 2; }
  // Returns the number of output pixels of one image.
  int pixels() const { return out_height() * out_width(); }

  // Returns the kernel's result, with a row per output pixel.
  template <typename T>
  Matrix<T> Run() const {
    std::vector<uint8_t> rgb;
    for (size_t n = 0; n < images.size(); ++n) {
      const bool in_planes = !planar.empty() && planar[n] != 0;
      const auto image = in_planes ? PlanesOf(images[n]) : images[n];
      rgb.insert(rgb.end(), image.begin(), image.end());
    }
    const DeviceArray<uint8_t> device_rgb(rgb), device_planar(planar);
    const DeviceArray<float> device_weight(weight), device_bias(bias);
    const DeviceArray<T> y(images.size() * pixels() * channels);
    std::vector<CudaImage> described;
    const uint8_t* next = device_rgb.data();
    for (size_t n = 0; n < images.size(); ++n) {
      described.push_back({next, sizes[n].height, sizes[n].width});
      next += images[n].size();
    }
    PixelConvolutionArgs<T> args{};
    args.count = static_cast<int>(images.size());
    args.images = described.data();
    args.height = place.height;
    args.width = place.width;
    args.channels = channels;
    args.weight = device_weight.data();
    args.bias = device_bias.data();
    args.mean = kMean;
    args.std = kStd;
    args.activation = activation;
    args.y = y.data();
    if (!planar.empty()) args.planar = device_planar.data();
    EXPECT_TRUE(PixelConvolutionCuda(args, TestStream()).ok());
    EXPECT_TRUE(y.GuardsIntact() && device_rgb.GuardsIntact());
    const std::vector<T> values = y.ToHost();
    Matrix<T> rows(images.size() * pixels(), channels, 0);
    std::copy(values.begin(), values.end(), rows.data());
    return rows;
  }

  double Activated(double v) const {
    if (activation == CudaActivation::kNone) return v;
    const bool bounded = activation == CudaActivation::kRelu6;
    return std::min(std::max(v, 0.0), bounded ? 6.0 : INFINITY);
  }

  Matrix<double> Reference() const {
    Matrix<double> y(images.size() * pixels(), channels);
    for (size_t n = 0; n < images.size(); ++n) {
      const std::vector<float> x = Normalized(images[n]);
      for (int pixel = 0; pixel < pixels(); ++pixel) {
        const int i = pixel / out_width(), j = pixel % out_width();
        for (int c = 0; c < channels; ++c) {
          double sum = bias[c];
          for (int tap = 0; tap < 27; ++tap) {
            const int row = 2 * i - 1 + tap / 9,
                      column = 2 * j - 1 + tap / 3 % 3;
            if (row < 0 || row >= sizes[n].height) continue;
            if (column < 0 || column >= sizes[n].width) continue;
            sum += double{x[(row * sizes[n].width + column) * 3 + tap % 3]} *
                   weight[tap * channels + c];
          }
          y.at(n * pixels() + pixel, c) = Activated(sum);
        }
      }
    }
    return y;
  }

  std::vector<Size> sizes;
  Size place;
  int channels;
  CudaActivation activation = CudaActivation::kNone;
  std::vector<std::vector<uint8_t>> images;
  std::vector<uint8_t> planar;  // Empty, or one entry per image.
  std::vector<float> weight;    // [27, channels]
  std::vector<float> bias;
};

// Runs the kernel twice. Expects the reference's values and the same bits both
// times.
template <typename T>
void ExpectAgreement(const Problem& problem) {
  SCOPED_TRACE(testing::Message()
               << problem.place.height << "x" << problem.place.width << ", "
               << problem.channels << " channels, activation "
               << static_cast<int>(problem.activation));
  const Matrix<T> y = problem.Run<T>();
  ExpectClose(y, problem.Reference(), kTolerance);
  EXPECT_TRUE(problem.Run<T>() == y);
}

template <typename T>
class PixelConvolutionCudaTest : public DeviceTest {};
TYPED_TEST_SUITE(PixelConvolutionCudaTest, ElementTypes);

TYPED_TEST(PixelConvolutionCudaTest, AgreesWithFp64AtAnySize) {
  for (const Size& size :
       {Size{1, 1}, Size{2, 2}, Size{1, 9}, Size{9, 1}, Size{31, 32},
        Size{32, 33}, Size{33, 34}, Size{34, 36}, Size{66, 67}}) {
    ExpectAgreement<TypeParam>(Problem({size, size}, size, 32));
  }
}

TYPED_TEST(PixelConvolutionCudaTest, AgreesWithFp64ForAnyChannels) {
  for (int channels : {8, 16, 32, 40, 64, 72}) {
    ExpectAgreement<TypeParam>(Problem({{19, 12}}, {19, 12}, channels));
  }
}

TYPED_TEST(PixelConvolutionCudaTest, AgreesWithFp64UnderEachActivation) {
  Problem problem({{21, 24}}, {21, 24}, 32);
  for (CudaActivation activation :
       {CudaActivation::kNone, CudaActivation::kRelu, CudaActivation::kRelu6}) {
    problem.activation = activation;
    ExpectAgreement<TypeParam>(problem);
  }
}

TYPED_TEST(PixelConvolutionCudaTest, RestOfAPlaceCountsAsZeros) {
  ExpectAgreement<TypeParam>(
      Problem({{20, 36}, {7, 40}, {24, 5}, {1, 1}, {24, 40}}, {24, 40}, 32));
  ExpectAgreement<TypeParam>(Problem({{3, 2}, {70, 33}}, {70, 75}, 8));
}

// There are more images than one launch takes.
TYPED_TEST(PixelConvolutionCudaTest, TakesManyImages) {
  std::vector<Size> sizes;
  for (int n = 0; n < 130; ++n) sizes.push_back({1 + n % 3, 1 + n % 4});
  ExpectAgreement<TypeParam>(Problem(sizes, {3, 4}, 8));
}

TYPED_TEST(PixelConvolutionCudaTest, BitsAreTheSameAnywhereInABatch) {
  Problem batch(std::vector<Size>(67, {5, 7}), {6, 8}, 32);
  Problem alone({{5, 7}}, {6, 8}, 32);
  alone.weight = batch.weight;
  alone.bias = batch.bias;
  const Matrix<TypeParam> all = batch.Run<TypeParam>();
  for (int n : {0, 1, 63, 64, 66}) {
    alone.images = {batch.images[n]};
    const Matrix<TypeParam> one = alone.Run<TypeParam>();
    for (int pixel = 0; pixel < alone.pixels(); ++pixel) {
      EXPECT_TRUE(one.RowEquals(pixel, all, n * alone.pixels() + pixel)) << n;
    }
  }
}

TYPED_TEST(PixelConvolutionCudaTest, PlanesHaveTheBitsOfPixels) {
  for (const Size& size :
       {Size{1, 1}, Size{5, 7}, Size{9, 2}, Size{33, 34}, Size{34, 36}}) {
    Problem problem({size, size, size}, {size.height + 1, size.width + 2}, 8);
    const Matrix<TypeParam> expected = problem.Run<TypeParam>();
    for (const std::vector<uint8_t>& planar :
         {std::vector<uint8_t>{1, 1, 1}, {0, 1, 0}, {1, 0, 1}}) {
      problem.planar = planar;
      EXPECT_TRUE(problem.Run<TypeParam>() == expected) << size.width;
    }
  }
  // There are more images than one launch takes.
  Problem many(std::vector<Size>(67, {2, 3}), {2, 3}, 8);
  const Matrix<TypeParam> expected = many.Run<TypeParam>();
  for (int n = 0; n < 67; ++n) many.planar.push_back(n % 5 < 2);
  EXPECT_TRUE(many.Run<TypeParam>() == expected);
}

TYPED_TEST(PixelConvolutionCudaTest, NanOfAWeightReachesItsChannelOnly) {
  Problem problem({{9, 9}}, {9, 9}, 40);
  for (CudaActivation activation :
       {CudaActivation::kNone, CudaActivation::kRelu, CudaActivation::kRelu6}) {
    problem.activation = activation;
    Problem poisoned = problem;
    poisoned.weight[13 * 40 + 33] = std::numeric_limits<float>::quiet_NaN();
    const Matrix<TypeParam> y = problem.Run<TypeParam>();
    Matrix<TypeParam> z = poisoned.Run<TypeParam>();
    for (int pixel = 0; pixel < problem.pixels(); ++pixel) {
      EXPECT_TRUE(std::isnan(static_cast<float>(z.at(pixel, 33)))) << pixel;
      z.at(pixel, 33) = y.at(pixel, 33);
    }
    EXPECT_TRUE(z == y);
  }
}

TYPED_TEST(PixelConvolutionCudaTest, NothingToDoIsFine) {
  ExpectAgreement<TypeParam>(Problem({}, {4, 4}, 8));
  ExpectAgreement<TypeParam>(Problem({{0, 0}}, {0, 4}, 8));
  ExpectAgreement<TypeParam>(Problem({{4, 4}}, {4, 4}, 0));
}

TYPED_TEST(PixelConvolutionCudaTest, SaysWhatItDoesNotTake) {
  PixelConvolutionArgs<TypeParam> args{};
  args.channels = 12;
  absl::Status status = PixelConvolutionCuda(args, TestStream());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "pixel_convolution: expected a multiple of 8 channels, got 12");
  args.channels = 8;
  args.activation = CudaActivation::kGeluErf;
  status = PixelConvolutionCuda(args, TestStream());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  args.activation = CudaActivation::kRelu;
  const DeviceArray<float> weight(27 * 8 + 1);
  args.weight = weight.data() + 1;
  status = PixelConvolutionCuda(args, TestStream());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sfmamba::kernels
