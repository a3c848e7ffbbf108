#include "server/call/wire/wire_request.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "server/call/wire/wire_cursor.h"
#include "server/errors/error.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::call {
namespace {

absl::Status Walk(absl::string_view bytes, WireRequest* request,
                  WireLimits limits = {}) {
  return WalkRequest({bytes}, limits, request);
}

std::string ReasonOf(absl::string_view bytes) {
  WireRequest request;
  return server::GetErrorDetail(Walk(bytes, &request)).reason;
}

TEST(WireRequestTest, PicturesStayWhereTheyAre) {
  v1::ClassifyRequest sent;
  sent.set_model("m");
  sent.add_images()->set_encoded("a file");
  v1::PixelBuffer* pixels = sent.add_images()->mutable_pixels();
  pixels->set_width(3);
  pixels->set_data("pixels");
  v1::Tensor* tensor = sent.add_images()->mutable_tensor();
  tensor->add_shape(300);
  tensor->set_data("values");
  sent.mutable_images(2)->set_orientation(v1::Image::IGNORE);
  sent.mutable_params()->set_min_score(0.5);
  const std::string bytes = sent.SerializeAsString();
  WireRequest request;
  ASSERT_TRUE(Walk(bytes, &request).ok());
  EXPECT_EQ(request.images, 3);
  ASSERT_EQ(request.extents.size(), 3u);
  v1::ClassifyRequest rest;
  ASSERT_TRUE(rest.ParseFromString(request.rest));
  EXPECT_EQ(rest.model(), "m");
  EXPECT_EQ(rest.params().min_score(), 0.5);
  EXPECT_EQ(rest.images(1).pixels().width(), 3);
  EXPECT_EQ(rest.images(2).tensor().shape(0), 300);
  EXPECT_EQ(rest.images(2).orientation(), v1::Image::IGNORE);
  const auto text = [&](const std::string& index) {
    const WireExtent extent = request.extents[ExtentIndex(index)];
    return bytes.substr(extent.position, extent.length);
  };
  EXPECT_EQ(text(rest.images(0).encoded()), "a file");
  EXPECT_EQ(text(rest.images(1).pixels().data()), "pixels");
  EXPECT_EQ(text(rest.images(2).tensor().data()), "values");
}

TEST(WireRequestTest, SurplusImagesAreCountedAlone) {
  v1::ClassifyRequest sent;
  for (int i = 0; i < 70; ++i) sent.add_images()->set_encoded("x");
  sent.set_request_id("after the images");
  WireRequest request;
  ASSERT_TRUE(Walk(sent.SerializeAsString(), &request).ok());
  EXPECT_EQ(request.images, 70);
  EXPECT_EQ(request.extents.size(), 64u);
  v1::ClassifyRequest rest;
  ASSERT_TRUE(rest.ParseFromString(request.rest));
  EXPECT_EQ(rest.images_size(), 64);
  EXPECT_EQ(rest.request_id(), "after the images");
}

TEST(WireRequestTest, MillionsOfEmptyImagesTakeNoMemory) {
  std::string bytes;
  for (int i = 0; i < 2'000'000; ++i) bytes += {'\x12', '\0'};
  WireRequest request;
  ASSERT_TRUE(Walk(bytes, &request).ok());
  EXPECT_EQ(request.images, kMaxImagesCounted);
  EXPECT_LT(request.rest.capacity(), 4096u);
  EXPECT_EQ(request.extents.capacity(), 0u);
}

TEST(WireRequestTest, WhatIsNotKnownIsLeftOut) {
  // The unknown field 9 of the request is a text, a number and a group. The
  // image also has a field 9.
  const std::string bytes(
      "\x4a\x03"
      "abc\x48\x01\x4b\x08\x01\x4c\x12\x04\x4a\x02zz",
      17);
  WireRequest request;
  ASSERT_TRUE(Walk(bytes, &request).ok());
  EXPECT_EQ(request.images, 1);
  EXPECT_EQ(request.rest, std::string("\x12\x80\x80\x80\0", 5));
}

// Protobuf treats a known field number with another wire type as an unknown
// field.
TEST(WireRequestTest, KnownNumbersOfAnotherWireTypeArePassedOn) {
  // The model's name has the wire types of a number, of 64 bits and of 32 bits.
  const std::string bytes(
      "\x08\x07\x09"
      "12345678"
      "\x0d"
      "1234",
      16);
  WireRequest request;
  ASSERT_TRUE(Walk(bytes, &request).ok());
  EXPECT_EQ(request.rest, bytes);
  for (const size_t size : {1, 10, 15}) {
    EXPECT_EQ(ReasonOf(bytes.substr(0, size)), "MALFORMED_MESSAGE") << size;
  }
}

TEST(WireRequestTest, AMalformedMessageIsRefused) {
  v1::ClassifyRequest sent;
  sent.add_images()->mutable_tensor()->set_data("values");
  const std::string bytes = sent.SerializeAsString();
  EXPECT_EQ(ReasonOf(bytes), "");
  EXPECT_EQ(ReasonOf(""), "");
  for (size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_EQ(ReasonOf(bytes.substr(0, size)), "MALFORMED_MESSAGE") << size;
  }
  EXPECT_EQ(ReasonOf("not a message"), "MALFORMED_MESSAGE");
  EXPECT_EQ(ReasonOf(std::string(200, '\x4b')), "MALFORMED_MESSAGE");
}

// The fields are protobuf groups that contain each other. They stand in a
// request or in one of its messages. Each message also counts as a level.
TEST(WireRequestTest, LevelsHaveALimit) {
  const auto within = [](const std::string& tags, int groups) {
    std::string bytes =
        std::string(groups, '\x4b') + std::string(groups, '\x4c');
    for (const char tag : tags) {
      std::string length;
      AppendVarint(bytes.size(), &length);
      bytes = tag + length + bytes;
    }
    return bytes;
  };
  const std::pair<const char*, int> kCases[] = {
      {"", kMaxWireDepth},
      {"\x12", kMaxWireDepth - 1},  // The groups are in an image.
      // The groups are in the tensor of an image.
      {"\x1a\x12", kMaxWireDepth - 2}};
  for (const auto& [tags, most] : kCases) {
    EXPECT_EQ(ReasonOf(within(tags, most)), "");
    EXPECT_EQ(ReasonOf(within(tags, most + 1)), "MALFORMED_MESSAGE");
  }
}

TEST(WireRequestTest, TheRestIsNeverLongerThanItsLimit) {
  const WireLimits limits;
  int taken = 0, refused = 0;
  for (int less = 0; less < 64; ++less) {
    v1::ClassifyRequest sent;
    sent.set_model(std::string(limits.max_rest_bytes - less, 'x'));
    sent.add_images()->set_encoded("picture");
    WireRequest request;
    const bool ok = Walk(sent.SerializeAsString(), &request).ok();
    ++(ok ? taken : refused);
    EXPECT_LE(request.rest.size(), limits.max_rest_bytes);
    v1::ClassifyRequest rest;
    EXPECT_TRUE(!ok || rest.ParseFromString(request.rest));
    EXPECT_TRUE(!ok || rest.images(0).has_encoded()) << less;
  }
  EXPECT_GT(taken, 0);
  EXPECT_GT(refused, 0);
}

TEST(WireRequestTest, TooMuchBesidePicturesIsRefusedByItsField) {
  const auto field = [](const v1::ClassifyRequest& sent) {
    WireRequest request;
    const absl::Status status = Walk(sent.SerializeAsString(), &request);
    EXPECT_LE(request.rest.size(), 256u << 10);
    return server::GetErrorDetail(status).field;
  };
  const std::string large(256 << 10, 'x');
  v1::ClassifyRequest picture, model, id, filter, shape;
  picture.add_images()->set_encoded(large);
  EXPECT_EQ(field(picture), "");
  model.set_model(large);
  EXPECT_EQ(field(model), "model");
  id.set_request_id(large);
  EXPECT_EQ(field(id), "request_id");
  for (int i = 0; i < 256 << 10; ++i) {
    filter.mutable_params()->add_class_filter(1);
  }
  EXPECT_EQ(field(filter), "params");
  for (int i = 0; i < 256 << 10; ++i) {
    shape.mutable_images()->Add()->mutable_tensor()->add_shape(1);
    if (i == 63) break;
  }
  EXPECT_EQ(field(shape), "");
  for (int i = 0; i < 256 << 10; ++i) {
    shape.mutable_images(0)->mutable_tensor()->add_shape(1);
  }
  EXPECT_EQ(field(shape), "images");
}

}  // namespace
}  // namespace sfmamba::call
