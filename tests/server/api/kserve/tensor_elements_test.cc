#include "server/api/kserve/tensor_elements.h"

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "inference/grpc_service.pb.h"

namespace sfmamba::kserve {
namespace {

using call::WireExtent;

// A message in two parts, divided at byte `at`. `all` is the range of all its
// bytes.
struct Cut {
  Cut(const std::string& message, size_t at)
      : parts({absl::string_view(message).substr(0, at),
               absl::string_view(message).substr(at)}),
        all({0, static_cast<int64_t>(message.size())}) {}

  std::vector<absl::string_view> parts;
  WireExtent all;
};

std::vector<std::string> Read(const std::string& message,
                              const std::vector<WireExtent>& extents) {
  std::vector<std::string> read;
  for (const WireExtent& extent : extents) {
    read.push_back(message.substr(extent.position, extent.length));
  }
  return read;
}

TEST(TensorElementsTest, FilesAreFoundBehindTheirLengths) {
  const std::string raw("\3\0\0\0abc\0\0\0\0\1\0\0\0d", 16);
  for (size_t at = 0; at <= raw.size(); ++at) {
    const Cut cut(raw, at);
    const auto extents = SplitRawFiles(cut.parts, 3, cut.all);
    ASSERT_TRUE(extents.ok()) << extents.status();
    EXPECT_EQ(Read(raw, *extents), std::vector<std::string>({"abc", "", "d"}));
    EXPECT_FALSE(SplitRawFiles(cut.parts, 2, cut.all).ok());
    EXPECT_FALSE(SplitRawFiles(cut.parts, 4, cut.all).ok());
  }
}

TEST(TensorElementsTest, SaysWhatOfAFileIsMissingOrTooMuch) {
  const auto error = [](const std::string& raw) {
    const Cut cut(raw, 0);
    return std::string(SplitRawFiles(cut.parts, 1, cut.all).status().message());
  };
  EXPECT_EQ(error("\5"), "got 0 whole elements, expected 1");
  EXPECT_EQ(error(std::string("\5\0\0\0abc", 7)),
            "got 3 bytes in element 0, expected 5 as it says");
  EXPECT_EQ(error(std::string("\1\0\0\0abc", 7)),
            "got 2 bytes after 1 elements, expected none");
}

TEST(TensorElementsTest, TypedFilesAreFoundAmongUnknownFields) {
  inference::InferTensorContents contents;
  contents.add_bytes_contents("abc");
  contents.add_bytes_contents("");
  const std::string message =
      contents.SerializeAsString() + std::string("\x98\x06\x01", 3);
  const Cut cut(message, 4);
  const auto extents = SplitTypedFiles(cut.parts, 2, cut.all);
  ASSERT_TRUE(extents.ok()) << extents.status();
  EXPECT_EQ(Read(message, *extents), std::vector<std::string>({"abc", ""}));
  EXPECT_FALSE(SplitTypedFiles(cut.parts, 1, cut.all).ok());
  EXPECT_FALSE(SplitTypedFiles(cut.parts, 3, cut.all).ok());
}

// Protobuf accepts a packed field in one part or in several parts, and
// unpacked.
TEST(TensorElementsTest, NumbersMayBePackedOrNot) {
  inference::InferTensorContents first, second;
  first.add_fp32_contents(1.5f);
  first.add_fp32_contents(-2);
  second.add_fp32_contents(3);
  std::string message = first.SerializeAsString() + second.SerializeAsString();
  // The tag of fp32_contents as a single number.
  message += '\x35';
  const float last = 4;
  message.append(reinterpret_cast<const char*>(&last), sizeof(last));
  const ElementType type = *ParseElementType("FP32");
  for (size_t at = 0; at <= message.size(); ++at) {
    const Cut cut(message, at);
    std::vector<float> values(4);
    ASSERT_TRUE(ReadTypedNumbers(cut.parts, type, 4, cut.all,
                                 reinterpret_cast<uint8_t*>(values.data()))
                    .ok());
    EXPECT_EQ(values, std::vector<float>({1.5f, -2, 3, 4}));
  }
}

TEST(TensorElementsTest, PixelsMayBePackedOrNot) {
  inference::InferTensorContents packed;
  packed.add_uint_contents(7);
  // The last two numbers are not packed. Each has its own tag of uint_contents.
  const std::string message = packed.SerializeAsString() + "\x20\xff\1\x20\2";
  const ElementType type = *ParseElementType("UINT8");
  const Cut cut(message, 0);
  std::vector<uint8_t> values(3);
  EXPECT_TRUE(
      ReadTypedNumbers(cut.parts, type, 3, cut.all, values.data()).ok());
  EXPECT_EQ(values, std::vector<uint8_t>({7, 255, 2}));
  const auto refused = [&type](const std::string& bytes, int64_t count) {
    const Cut all(bytes, 0);
    std::vector<uint8_t> into(count);
    return std::string(
        ReadTypedNumbers(all.parts, type, count, all.all, into.data())
            .message());
  };
  EXPECT_EQ(refused(message, 2), "got more elements than the shape has");
  EXPECT_EQ(refused(message, 4),
            "got other than 4 elements, expected as many as the shape has");
  EXPECT_EQ(refused("\x25zzzz", 1), "a tensor's contents are malformed");
  EXPECT_EQ(refused("\x2a\1\1", 1),
            "got uint64_contents, expected uint_contents");
}

TEST(TensorElementsTest, PixelsAreNarrowedWithARangeCheck) {
  inference::InferTensorContents contents;
  for (const int value : {0, 127, 128, 255}) contents.add_uint_contents(value);
  const std::string message = contents.SerializeAsString();
  const ElementType type = *ParseElementType("UINT8");
  const Cut cut(message, 3);
  std::vector<uint8_t> values(4);
  ASSERT_TRUE(
      ReadTypedNumbers(cut.parts, type, 4, cut.all, values.data()).ok());
  EXPECT_EQ(values, std::vector<uint8_t>({0, 127, 128, 255}));
  EXPECT_FALSE(
      ReadTypedNumbers(cut.parts, type, 3, cut.all, values.data()).ok());
  contents.set_uint_contents(2, 256);
  const std::string wide = contents.SerializeAsString();
  const Cut all(wide, 0);
  EXPECT_FALSE(
      ReadTypedNumbers(all.parts, type, 4, all.all, values.data()).ok());
}

TEST(TensorElementsTest, ATruncatedTensorIsMalformed) {
  inference::InferTensorContents contents;
  for (int i = 0; i < 4; ++i) contents.add_fp32_contents(i);
  const std::string message = contents.SerializeAsString();
  const ElementType type = *ParseElementType("FP32");
  for (size_t size = 0; size < message.size(); ++size) {
    const std::string part = message.substr(0, size);
    const Cut cut(part, size / 2);
    std::vector<float> values(4);
    EXPECT_FALSE(ReadTypedNumbers(cut.parts, type, 4, cut.all,
                                  reinterpret_cast<uint8_t*>(values.data()))
                     .ok());
  }
}

TEST(TensorElementsTest, AnImageOfATensorIsAPartOfIt) {
  const ElementType type = *ParseElementType("FP16");
  const std::vector<int64_t> shape = {2, 3, 4, 5};
  ASSERT_EQ(*CountImages(type, shape), 2);
  EXPECT_EQ(BytesOfImage(type, shape), 120);
  const auto extents = SplitRawNumbers(type, shape, 2, {7, 240});
  ASSERT_TRUE(extents.ok());
  EXPECT_EQ((*extents)[1].position, 127);
  EXPECT_EQ((*extents)[1].length, 120);
  EXPECT_EQ(SplitRawNumbers(type, shape, 2, {7, 239}).status().message(),
            "got 239 bytes, expected 240 of the shape [2, 3, 4, 5]");
}

TEST(TensorElementsTest, NoShapeIsMultipliedBeyondItsType) {
  constexpr int64_t kLarge = int64_t{1} << 31;
  const ElementType fp32 = *ParseElementType("FP32");
  EXPECT_FALSE(CountImages(fp32, {1, 3, kLarge, kLarge}).ok());
  EXPECT_FALSE(CountImages(fp32, {kLarge, 3, kLarge, 4}).ok());
  EXPECT_FALSE(CountImages(fp32, {-1, 3, -1, 4}).ok());
  EXPECT_TRUE(CountImages(fp32, {1, 3, kLarge, 4}).ok());
  // Sizes are limited in bytes. The uint8 values have fewer than 2^63 bytes,
  // and fp32 values have four times as many.
  const ElementType uint8 = *ParseElementType("UINT8");
  EXPECT_TRUE(CountImages(uint8, {1, 3, kLarge, kLarge / 2}).ok());
  EXPECT_FALSE(CountImages(fp32, {1, 3, kLarge, kLarge / 2}).ok());
  EXPECT_TRUE(CountImages(fp32, {1, 3, 1, 1}).ok());
  EXPECT_FALSE(CountImages(fp32, {1, 3, 0, 1}).ok());
  EXPECT_FALSE(CountImages(fp32, {1, 3, 1, 0}).ok());
}

TEST(TensorElementsTest, WhatIsLongIsShownInPart) {
  const std::string shown(32, 'x');
  EXPECT_EQ(ParseElementType(shown + "y").status().message(),
            "got \"" + shown + "\", expected FP32, FP16, BF16, UINT8 or BYTES");
  const ElementType fp32 = *ParseElementType("FP32");
  const auto error = [&fp32](int sides) {
    return std::string(
        CountImages(fp32, std::vector<int64_t>(sides, 1)).status().message());
  };
  const std::string expected =
      ", expected [N, 3, height, width] of 1 or more images";
  EXPECT_EQ(error(8), "got [1, 1, 1, 1, 1, 1, 1, 1]" + expected);
  EXPECT_EQ(error(9), "got [1, 1, 1, 1, 1, 1, 1, 1, ...]" + expected);
}

}  // namespace
}  // namespace sfmamba::kserve
