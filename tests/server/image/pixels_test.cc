#include "server/image/pixels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "opencv2/core/utility.hpp"
#include "server/errors/error.h"
#include "server/image/pixel_pool.h"

namespace sfmamba::image {
namespace {

using Format = PixelBuffer::Format;
using Type = InputTensor::Type;

// Returns a view of `data`. `data` must outlive it.
PixelBuffer Buffer(int width, int height, Format format, absl::string_view data,
                   int stride = 0) {
  return {width, height, format, stride, data};
}

// Expects that the buffer is refused. Returns "reason field" of the error.
std::string Refusal(const PixelBuffer& pixels) {
  const absl::Status status = ValidatePixels(pixels, ImageLimits());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const server::ErrorDetail detail = server::GetErrorDetail(status);
  return detail.reason + " " + detail.field;
}

std::vector<uint8_t> Rgb(const PixelBuffer& pixels) {
  EXPECT_TRUE(ValidatePixels(pixels, ImageLimits()).ok())
      << ValidatePixels(pixels, ImageLimits());
  return ToRgb(pixels).data;
}

TEST(PixelsTest, EachFormatBecomesRgb) {
  const std::vector<uint8_t> expected = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(Rgb(Buffer(2, 1, Format::kRgb8, "\1\2\3\4\5\6")), expected);
  EXPECT_EQ(Rgb(Buffer(2, 1, Format::kBgr8, "\3\2\1\6\5\4")), expected);
  EXPECT_EQ(Rgb(Buffer(2, 1, Format::kRgba8, "\1\2\3\x9\4\5\6\x9")), expected);
  EXPECT_EQ(Rgb(Buffer(2, 1, Format::kBgra8, "\3\2\1\x9\6\5\4\x9")), expected);
  EXPECT_EQ(Rgb(Buffer(2, 1, Format::kGray8, "\1\4")),
            (std::vector<uint8_t>{1, 1, 1, 4, 4, 4}));
}

// The decode pool already has one thread per processor.
TEST(PixelsTest, OpenCvStartsNoThreads) {
  ToRgb(Buffer(2, 1, Format::kGray8, "\1\4"));
  EXPECT_EQ(cv::getNumThreads(), 1);
}

TEST(PixelsTest, StrideSkipsTheRestOfARow) {
  EXPECT_EQ(Rgb(Buffer(1, 2, Format::kRgb8, "\1\2\3xx\4\5\6xx", 5)),
            (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
}

TEST(PixelsTest, ATooSmallStrideIsToldTheLeastOne) {
  const absl::Status status = ValidatePixels(
      Buffer(2, 1, Format::kRgba8, "12345678", 7), ImageLimits());
  EXPECT_EQ(status.message(), "got 7, expected at least 8");
}

TEST(PixelsTest, Nv12IsBt601VideoRange) {
  // The colours are black, white, mid grey and pure red. BT.601 defines red as
  // (81, 90, 240).
  const auto image = [](int y, int u, int v) {
    std::string data(4, static_cast<char>(y));
    data += {static_cast<char>(u), static_cast<char>(v)};
    return Rgb(Buffer(2, 2, Format::kNv12, data));
  };
  EXPECT_EQ(image(16, 128, 128), std::vector<uint8_t>(12, 0));
  EXPECT_EQ(image(235, 128, 128), std::vector<uint8_t>(12, 255));
  const std::vector<uint8_t> red = image(81, 90, 240);
  EXPECT_NEAR(red[0], 255, 1);
  EXPECT_NEAR(red[1], 0, 1);
  EXPECT_NEAR(red[2], 0, 1);
}

TEST(PixelsTest, Nv12StrideHoldsForBothPlanes) {
  std::string data = "\x10\x10xx\x10\x10xx";
  data += "\x80\x80xx";
  EXPECT_EQ(Rgb(Buffer(2, 2, Format::kNv12, data, 4)),
            std::vector<uint8_t>(12, 0));
}

TEST(PixelsTest, RefusesWhatDoesNotFit) {
  const auto rgb = Format::kRgb8;
  EXPECT_EQ(Refusal(Buffer(2, 1, rgb, "12345")), "INVALID_FIELD .data");
  EXPECT_EQ(Refusal(Buffer(2, 1, rgb, "1234567")), "INVALID_FIELD .data");
  EXPECT_EQ(Refusal(Buffer(2, 1, rgb, "")), "INVALID_FIELD .data");
  EXPECT_EQ(Refusal(Buffer(0, 1, rgb, "")), "INVALID_FIELD .width");
  EXPECT_EQ(Refusal(Buffer(1, -1, rgb, "")), "INVALID_FIELD .height");
  EXPECT_EQ(Refusal(Buffer(2, 1, rgb, "123456", 5)),
            "INVALID_FIELD .row_stride_bytes");
  EXPECT_EQ(Refusal(Buffer(2, 1, rgb, "123456", -6)),
            "INVALID_FIELD .row_stride_bytes");
  EXPECT_EQ(Refusal(Buffer(2, 16384, rgb, "123456", INT32_MAX)),
            "INVALID_FIELD .data");
  EXPECT_EQ(Refusal(Buffer(3, 2, Format::kNv12, "123456789")),
            "INVALID_FIELD .width");
  EXPECT_EQ(Refusal(Buffer(2, 3, Format::kNv12, "123456789")),
            "INVALID_FIELD .height");
  EXPECT_EQ(Refusal(Buffer(INT32_MAX, INT32_MAX, rgb, "1")),
            "IMAGE_TOO_LARGE .width");
  EXPECT_EQ(Refusal(Buffer(10000, 10000, rgb, "1")), "IMAGE_TOO_LARGE .width");
}

// A tensor and the memory that it views.
struct OwnedTensor {
  Type type;
  std::vector<int64_t> shape;
  std::string data;

  operator InputTensor() const { return {type, shape, data, {}}; }
};

template <typename T>
OwnedTensor MakeTensor(Type type, const std::vector<T>& values,
                       std::vector<int64_t> shape = {3, 1, 1}) {
  return {type, std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()),
                      values.size() * sizeof(T))};
}

model::ModelConfig ModelOfSide(int side) {
  model::ModelConfig model;
  model.image_size = side;
  return model;
}

TEST(TensorTest, EachTypeIsRead) {
  const auto f32 = MakeTensor<float>(Type::kFloat32, {-1.5f, 0, 3e38f});
  EXPECT_EQ(ToImageBuffer(f32)->values, (std::vector<float>{-1.5f, 0, 3e38f}));
  // The values are -1.5, the smallest subnormal number and the largest number.
  const auto f16 = MakeTensor<uint16_t>(Type::kFloat16, {0xBE00, 1, 0x7BFF});
  EXPECT_EQ(ToImageBuffer(f16)->values,
            (std::vector<float>{-1.5f, 5.9604645e-8f, 65504}));
  // The values are the smallest and the largest negative subnormal numbers, and
  // zero.
  const auto below =
      MakeTensor<uint16_t>(Type::kFloat16, {0x8001, 0x83FF, 0x8000});
  EXPECT_EQ(ToImageBuffer(below)->values,
            (std::vector<float>{-5.9604645e-8f, -6.0975552e-5f, -0.0f}));
  EXPECT_TRUE(std::signbit(ToImageBuffer(below)->values[2]));
  const auto bf16 = MakeTensor<uint16_t>(Type::kBfloat16, {0xBFC0, 0, 0x4040});
  EXPECT_EQ(ToImageBuffer(bf16)->values, (std::vector<float>{-1.5f, 0, 3}));
}

TEST(TensorTest, Uint8StaysInPlanes) {
  const auto tensor = MakeTensor<uint8_t>(
      Type::kUint8, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {3, 2, 2});
  EXPECT_TRUE(ValidateTensor(tensor, ModelOfSide(2)).ok());
  const auto buffer = ToImageBuffer(tensor);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(buffer->pixels,
            (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_TRUE(buffer->planar);
  EXPECT_EQ(buffer->height, 2);
}

TEST(TensorTest, PixelsInPooledMemoryAreTheSame) {
  const auto tensor = MakeTensor<uint8_t>(
      Type::kUint8, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {3, 2, 2});
  std::shared_ptr<uint8_t> memory(new uint8_t[12],
                                  std::default_delete<uint8_t[]>());
  PixelPool pool(memory, 12, 1);
  const auto buffer = ToImageBuffer(tensor, &pool);
  ASSERT_TRUE(buffer.ok());
  EXPECT_TRUE(buffer->pixels.is_pooled());
  EXPECT_EQ(buffer->pixels, ToImageBuffer(tensor)->pixels);
}

TEST(TensorTest, AShapeIsRepeatedUnlessItIsLong) {
  const auto message = [](std::vector<int64_t> shape) {
    return std::string(
        ValidateTensor(MakeTensor<float>(Type::kFloat32, {0}, std::move(shape)),
                       ModelOfSide(1))
            .message());
  };
  EXPECT_EQ(message({3, 2, 2}), "got [3, 2, 2], expected [3, 1, 1]");
  EXPECT_EQ(message({1, 2, 3, 4, 5, 6, 7, 8}),
            "got [1, 2, 3, 4, 5, 6, 7, 8], expected [3, 1, 1]");
  EXPECT_EQ(message({1, 2, 3, 4, 5, 6, 7, 8, 9}),
            "got [1, 2, 3, 4, 5, 6, 7, 8, ...], expected [3, 1, 1]");
}

TEST(TensorTest, BytesInPiecesAreReadAsTheyAreInOne) {
  constexpr int kRows = 37, kColumns = 41, kElements = 3 * kRows * kColumns;
  std::mt19937 random(1);
  for (const Type type :
       {Type::kUint8, Type::kFloat32, Type::kFloat16, Type::kBfloat16}) {
    const int size = type == Type::kUint8 ? 1 : type == Type::kFloat32 ? 4 : 2;
    std::vector<uint8_t> bytes(kElements * size);
    // These bytes are random, but give only exponents of finite values.
    for (uint8_t& byte : bytes) byte = random() % 0x3F;
    const auto owned = MakeTensor(type, bytes, {3, kRows, kColumns});
    const absl::StatusOr<ImageBuffer> whole = ToImageBuffer(owned);
    ASSERT_TRUE(whole.ok()) << whole.status();
    for (const int longest : {1, 2, 7, 100, 3000}) {
      InputTensor cut = owned;
      cut.data = absl::string_view();
      for (size_t at = 0; at < bytes.size();) {
        const size_t piece =
            std::min<size_t>(1 + random() % longest, bytes.size() - at);
        cut.pieces.push_back(absl::string_view(owned.data).substr(at, piece));
        at += piece;
      }
      const absl::StatusOr<ImageBuffer> joined = ToImageBuffer(cut);
      ASSERT_TRUE(joined.ok()) << joined.status();
      EXPECT_EQ(joined->pixels, whole->pixels) << longest;
      EXPECT_EQ(joined->values, whole->values) << longest;
    }
  }
}

TEST(TensorTest, AModelThatKeepsTheRatioTakesAnySidesWithinItsLimits) {
  model::ModelConfig model;
  model.resize = model::Resize::kKeepRatio;
  model.short_side = 2;
  model.long_side = 4;
  const auto status = [&model](int64_t height, int64_t width) {
    return ValidateTensor(
        MakeTensor(Type::kUint8, std::vector<uint8_t>(3 * height * width),
                   {3, height, width}),
        model);
  };
  for (const auto& [height, width] :
       {std::pair{2, 4}, {4, 2}, {1, 1}, {1, 4}, {2, 2}}) {
    EXPECT_TRUE(status(height, width).ok()) << height << "x" << width;
  }
  for (const auto& [height, width] : {std::pair{3, 4}, {3, 3}, {5, 1}}) {
    const absl::Status refused = status(height, width);
    EXPECT_EQ(server::GetErrorDetail(refused).field, ".shape");
    EXPECT_NE(refused.message().find(
                  "[3, H, W] with sides of 1 to 4, the shorter at most 2"),
              std::string::npos)
        << refused;
  }
}

TEST(TensorTest, NotFiniteIsRefusedByElement) {
  const float inf = std::numeric_limits<float>::infinity();
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), inf, -inf}) {
    const auto status =
        ToImageBuffer(MakeTensor<float>(Type::kFloat32, {0, 1, bad})).status();
    EXPECT_EQ(server::GetErrorDetail(status).reason, "INVALID_FIELD");
    EXPECT_EQ(server::GetErrorDetail(status).field, ".data");
    EXPECT_NE(status.message().find("element 2"), std::string::npos);
  }
  EXPECT_FALSE(
      ToImageBuffer(MakeTensor<uint16_t>(Type::kFloat16, {0, 0x7C00, 0})).ok());
  EXPECT_FALSE(
      ToImageBuffer(MakeTensor<uint16_t>(Type::kFloat16, {0xFE00, 0, 0})).ok());
  EXPECT_FALSE(
      ToImageBuffer(MakeTensor<uint16_t>(Type::kBfloat16, {0, 0x7FC0, 0}))
          .ok());
}

TEST(TensorTest, RefusesWhatDoesNotFit) {
  const auto field = [](const InputTensor& tensor) {
    const absl::Status status = ValidateTensor(tensor, ModelOfSide(1));
    EXPECT_EQ(server::GetErrorDetail(status).reason, "INVALID_FIELD");
    return server::GetErrorDetail(status).field;
  };
  const std::vector<float> three(3);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{},
        {3, 1},
        {1, 3, 1, 1},
        {1, 1, 3},
        {3, -1, 1},
        {3, 0, 1},
        {3, 2, 2},
        {int64_t{1} << 62, int64_t{1} << 62, 16}}) {
    EXPECT_EQ(field(MakeTensor(Type::kFloat32, three, shape)), ".shape");
  }
  EXPECT_EQ(field(MakeTensor(Type::kFloat16, three)), ".data");
  EXPECT_EQ(field(MakeTensor(Type::kFloat32, std::vector<float>(2))), ".data");
}

}  // namespace
}  // namespace sfmamba::image
