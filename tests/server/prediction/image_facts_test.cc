// What is foreseen of an image before it is decoded.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/prediction/request_validation.h"
#include "tests/server/picture.h"

namespace sfmamba::prediction {
namespace {

constexpr int kWidth = 48, kHeight = 32, kSide = 16;
constexpr int64_t kPicture = 3 * kWidth * kHeight;  // Bytes.
constexpr int64_t kInput = 3 * kSide * kSide;

model::ModelConfig Model() {
  model::ModelConfig model;
  model.image_size = kSide;
  return model;
}

ImageFacts Facts(const image::ImageSource& source) {
  ImageFacts facts;
  const absl::Status status =
      ValidateImage(source, Model(), RequestLimits(), &facts);
  EXPECT_TRUE(status.ok()) << status;
  return facts;
}

image::ImageSource Encoded(const std::string& bytes) {
  image::ImageSource source;
  source.source = image::EncodedImage{bytes};
  return source;
}

TEST(ImageFactsTest, DecodingTakesThePictureAndTheInput) {
  const std::string jpeg =
      server::EncodeJpeg(server::Gradient(kWidth, kHeight));
  const ImageFacts facts = Facts(Encoded(jpeg));
  EXPECT_EQ(facts.format, "jpeg");
  EXPECT_EQ(facts.pixels, kWidth * kHeight);
  EXPECT_EQ(facts.seen.width, kWidth);
  EXPECT_EQ(facts.input_bytes, kInput);
  EXPECT_EQ(facts.decode_bytes, kPicture + kInput);
}

TEST(ImageFactsTest, ARotatedPictureIsThereTwice) {
  const std::string jpeg =
      server::WithExif(server::EncodeJpeg(server::Gradient(kWidth, kHeight)),
                       server::ExifOrientation(6, true));
  image::ImageSource source = Encoded(jpeg);
  EXPECT_EQ(Facts(source).decode_bytes, 2 * kPicture + kInput);
  EXPECT_EQ(Facts(source).seen.width, kHeight);
  source.apply_orientation = false;
  EXPECT_EQ(Facts(source).decode_bytes, kPicture + kInput);
  EXPECT_EQ(Facts(source).seen.width, kWidth);
}

TEST(ImageFactsTest, ACropIsThereBesideItsPicture) {
  const std::string png = server::EncodePng(server::Gradient(kWidth, kHeight));
  image::ImageSource source = Encoded(png);
  source.crop = image::CropRect{0, 0, 0.5, 0.5};
  const ImageFacts facts = Facts(source);
  EXPECT_EQ(facts.seen.pixels(), kWidth * kHeight / 4);
  EXPECT_EQ(facts.decode_bytes, kPicture + kPicture / 4 + kInput);
}

TEST(ImageFactsTest, ATensorIsTheInput) {
  const std::string data(3 * kSide * kSide * 4, '\0');
  const std::vector<int64_t> shape = {3, kSide, kSide};
  image::ImageSource source;
  source.source =
      image::InputTensor{image::InputTensor::Type::kFloat32, shape, data};
  EXPECT_EQ(Facts(source).input_bytes, 4 * kInput);
  EXPECT_EQ(Facts(source).decode_bytes, 4 * kInput);
  const absl::string_view pixels(data.data(), kInput);
  source.source =
      image::InputTensor{image::InputTensor::Type::kUint8, shape, pixels};
  EXPECT_EQ(Facts(source).input_bytes, kInput);
}

TEST(ImageFactsTest, ASourceThatIsMissingIsNamed) {
  ImageFacts facts;
  const absl::Status status =
      ValidateImage(image::ImageSource(), Model(), RequestLimits(), &facts);
  EXPECT_EQ(server::GetErrorDetail(status).reason, "INVALID_FIELD");
  EXPECT_EQ(facts.format, "unknown");
}

}  // namespace
}  // namespace sfmamba::prediction
