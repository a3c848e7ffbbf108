#include "kernels/scan/cross_scan_cuda.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/scan/device_scan.h"

namespace sfmamba::kernels {
namespace {

constexpr int kDirections = 4;

// Inputs distributed as in a trained model.
template <typename T>
struct CrossScanProblem {
  CrossScanProblem(int images, int height, int width, int channels)
      : images(images),
        height(height),
        width(width),
        u(images * height * width, channels, /*padding=*/0),
        dt(kDirections * u.rows(), channels, /*padding=*/0),
        projected(u.rows(), kDirections * kProjected) {
    std::mt19937 random(1);
    u.FillNormal(random, 0, 1);
    dt.FillNormal(random, 0, 0.5f);
    projected.FillNormal(random, 0, 1);
    A = Normals(random, kDirections * channels, 0, 0.3f);
    for (float& a : A) a = -std::exp(a);
    D = Normals(random, kDirections * channels, 0, 1);
    bias = Normals(random, kDirections * channels, -4.6f, 1);
  }

  // Returns the kernel's result y [4 * pixels, channels].
  Matrix<float> Run(const ScanPlan& plan) const {
    const DeviceMatrix<T> device_u(u), device_dt(dt), bc(projected);
    const DeviceMatrix<float> y(
        Matrix<float>(dt.rows(), dt.columns(), /*padding=*/0));
    const DeviceArray<float> device_A(A), device_D(D), device_bias(bias);
    const int64_t bytes =
        ScanScratchBytes(plan, kDirections * images, u.columns(), 1);
    const DeviceArray<float> scratch(bytes / sizeof(float));
    CrossScanArgs<T> args{images, height, width, u.columns()};
    args.u = device_u.data();
    args.dt = device_dt.data();
    args.B = bc.data() + 1;
    args.C = bc.data() + 2;
    args.bc_stride = bc.stride();
    args.bc_direction_stride = kProjected;
    args.A = device_A.data();
    args.D = device_D.data();
    args.bias = device_bias.data();
    args.y = y.data();
    EXPECT_EQ(CrossScanCuda(args, plan, scratch.data(), TestStream()),
              absl::OkStatus());
    EXPECT_TRUE(scratch.GuardsIntact());
    return y.ToHost();
  }

  // Returns the result of the definition, in fp64.
  Matrix<double> Reference() const {
    Matrix<double> y(dt.rows(), dt.columns());
    const int area = height * width;
    for (int k = 0; k < kDirections; ++k) {
      for (int64_t first = 0; first < u.rows(); first += area) {
        for (int d = 0; d < u.columns(); ++d) {
          const int of_direction = k * u.columns() + d;
          double h = 0;
          for (int t = 0; t < area; ++t) {
            const int64_t p = first + PixelOf(k, t), row = k * u.rows() + p;
            const double B = static_cast<float>(projected.at(p, 3 * k + 1));
            const double C = static_cast<float>(projected.at(p, 3 * k + 2));
            const double x = static_cast<float>(u.at(p, d));
            const double delta =
                std::log1p(std::exp(static_cast<float>(dt.at(row, d)) +
                                    double{bias[of_direction]}));
            h = std::exp(delta * A[of_direction]) * h + delta * B * x;
            y.at(row, d) = C * h + D[of_direction] * x;
          }
        }
      }
    }
    return y;
  }

  void ExpectAgreement(const ScanPlan& plan) const {
    SCOPED_TRACE(testing::Message() << images << " maps of " << height << " x "
                                    << width << ", channels " << u.columns());
    ExpectScanned(Run(plan), Reference(), ScanTolerance(plan));
  }

  // The number of values in `projected` for each pixel and direction: one value
  // that the scan does not read, then B, then C. In a model, dt is computed
  // from the first value.
  static constexpr int kProjected = 3;

  int images, height, width;
  Matrix<T> u, dt, projected;
  std::vector<float> A, D, bias;

 private:
  // Returns the pixel that direction k visits at time t.
  int PixelOf(int k, int t) const {
    if (k >= 2) t = height * width - 1 - t;
    return k % 2 == 0 ? t : t % height * width + t / height;
  }
};

class CrossScanCudaTest : public testing::TestWithParam<ScanPlan> {
 protected:
  void SetUp() override {
    if (!HasDevice()) GTEST_SKIP() << "no GPU";
  }
};

INSTANTIATE_TEST_SUITE_P(Plan, CrossScanCudaTest,
                         testing::Values(LanePlan(1), ChunkPlan(1, 1),
                                         ChunkPlan(2, 1), ChunkPlan(3, 1),
                                         ChunkPlan(11, 1)),
                         ScanPlanName);

TEST_P(CrossScanCudaTest, AgreesWithFp64) {
  for (const auto& [height, width] :
       {std::pair{1, 1}, {1, 9}, {9, 1}, {7, 5}, {4, 8}, {13, 21}}) {
    for (const int images : {1, 3}) {
      for (const int channels : {1, 36, 130}) {
        CrossScanProblem<float>(images, height, width, channels)
            .ExpectAgreement(GetParam());
      }
    }
  }
}

TEST_P(CrossScanCudaTest, AgreesWithFp64InHalfPrecision) {
  CrossScanProblem<BFloat16>(2, 13, 10, 33).ExpectAgreement(GetParam());
  CrossScanProblem<Float16>(2, 13, 10, 33).ExpectAgreement(GetParam());
}

// The map is as large as in the first stage of a detector for images of
// 800 x 1344 pixels.
TEST(CrossScanLargeMapCudaTest, AgreesWithFp64) {
  if (!HasDevice()) GTEST_SKIP() << "no GPU";
  const int channels = Emulated() ? 2 : 96;
  const CrossScanProblem<float> scan(1, 200, 336, channels);
  for (const ScanPlan& plan :
       {DefaultScanPlan(/*multiprocessors=*/132, kDirections, 200 * 336,
                        channels, /*states=*/1),
        ChunkPlan(1024, 1), LanePlan(1)}) {
    scan.ExpectAgreement(plan);
  }
}

// The map between the two tested maps contains NaNs. These must not affect the
// tested maps.
TEST_P(CrossScanCudaTest, AMapDoesNotDependOnTheOthers) {
  constexpr int kHeight = 6, kWidth = 7, kArea = kHeight * kWidth;
  constexpr int kChannels = 34, kImages = 3;
  CrossScanProblem<float> all(kImages, kHeight, kWidth, kChannels);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int d = 0; d < kChannels; ++d) all.u.at(kArea + 20, d) = nan;
  const Matrix<float> together = all.Run(GetParam());
  for (const int image : {0, 2}) {
    CrossScanProblem<float> one(1, kHeight, kWidth, kChannels);
    one.A = all.A;
    one.D = all.D;
    one.bias = all.bias;
    for (int p = 0; p < kArea; ++p) {
      one.u.CopyRow(p, all.u, image * kArea + p);
      one.projected.CopyRow(p, all.projected, image * kArea + p);
      for (int k = 0; k < kDirections; ++k) {
        one.dt.CopyRow(k * kArea + p, all.dt,
                       (k * kImages + image) * kArea + p);
      }
    }
    const Matrix<float> alone = one.Run(GetParam());
    for (int k = 0; k < kDirections; ++k) {
      for (int p = 0; p < kArea; ++p) {
        ASSERT_TRUE(alone.RowIsFinite(k * kArea + p));
        ASSERT_TRUE(together.RowEquals((k * kImages + image) * kArea + p, alone,
                                       k * kArea + p))
            << "image " << image << ", direction " << k << ", pixel " << p;
      }
    }
  }
}

TEST(CrossScanCudaArgsTest, NamesTheFieldThatItRefuses) {
  CrossScanArgs<float> args{1, 2, 3, 0};
  EXPECT_EQ(CrossScanCuda(args, LanePlan(1), nullptr, TestStream()).message(),
            "cross_scan: channels: got 0, expected 1 to 1048576");
  args.channels = 4;
  EXPECT_EQ(
      CrossScanCuda(args, ChunkPlan(2, 1), nullptr, TestStream()).message(),
      "cross_scan: scratch: got null, expected 128 bytes");
}

}  // namespace
}  // namespace sfmamba::kernels
