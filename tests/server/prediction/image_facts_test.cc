// Tests the facts that are predicted before an image is decoded.

#include <cstdio>  // jpeglib.h needs FILE and size_t.
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "jpeglib.h"
#include "server/batching/batch_key.h"
#include "server/errors/error.h"
#include "server/image/image_input.h"
#include "server/prediction/request_validation.h"
#include "tests/server/picture.h"
#include "tests/testing/allocations.h"

namespace sfmamba::prediction {
namespace {

constexpr int kSide = 224;
constexpr int64_t kInput = 3 * kSide * kSide;

model::ModelConfig Classifier() {
  model::ModelConfig model;
  model.image_size = kSide;
  return model;
}

// Returns a detector with inputs of up to 320 x 480 pixels.
model::ModelConfig Detector() {
  model::ModelConfig model;
  model.resize = model::Resize::kKeepRatio;
  model.short_side = 320;
  model.long_side = 480;
  return model;
}

ImageFacts Facts(const image::ImageSource& source,
                 const model::ModelConfig& model = Classifier()) {
  ImageFacts facts;
  const absl::Status status =
      ValidateImage(source, model, RequestLimits(), &facts);
  EXPECT_TRUE(status.ok()) << status;
  return facts;
}

image::ImageSource Encoded(const std::string& bytes) {
  image::ImageSource source;
  source.source = image::EncodedImage{bytes};
  return source;
}

std::string Rotated(const std::string& jpeg) {
  return server::WithExif(jpeg, server::ExifOrientation(6, true));
}

// Expects the predicted memory to cover what decoding allocates. For large
// pictures, it must be at most 1.5 times the allocation.
void ExpectForeseen(const image::ImageSource& source,
                    const model::ModelConfig& model) {
  const ImageFacts facts = Facts(source, model);
  const auto make = [&] {
    const auto input =
        image::MakeInput(source, model, std::nullopt, image::ImageLimits());
    ASSERT_TRUE(input.ok()) << input.status();
    EXPECT_EQ(input->image.bytes(), facts.input_bytes);
    EXPECT_EQ(facts.key, KeyOf(model, {input->image.height, input->image.width},
                               batching::ImageType::kUint8));
  };
  make();  // Libraries allocate their caches here.
  const int64_t peak = PeakOfHeap(make);
  EXPECT_GE(facts.decode_bytes, peak);
  if (peak >= 8 << 20) {
    EXPECT_LE(facts.decode_bytes, peak / 2 * 3);
  }
}

void ExpectForeseenOfAll(const image::ImageSource& source) {
  ExpectForeseen(source, Classifier());
  ExpectForeseen(source, Detector());
  image::ImageSource cropped = source;
  for (const image::CropRect& crop :
       {image::CropRect{0, 0, 1, 1}, image::CropRect{0.25, 0.5, 0.75, 0.6}}) {
    cropped.crop = crop;
    ExpectForeseen(cropped, Classifier());
    ExpectForeseen(cropped, Detector());
  }
}

TEST(ImageFactsTest, SaysWhatAPictureBecomes) {
  const std::string jpeg = server::EncodeJpeg(server::Gradient(480, 320));
  const ImageFacts facts = Facts(Encoded(jpeg));
  EXPECT_EQ(facts.format, "jpeg");
  EXPECT_EQ(facts.pixels, 480 * 320);
  EXPECT_EQ(facts.seen.width, 480);
  EXPECT_EQ(facts.input_bytes, kInput);
  const std::string rotated = Rotated(jpeg);
  image::ImageSource source = Encoded(rotated);
  EXPECT_EQ(Facts(source).seen.width, 320);
  source.apply_orientation = false;
  EXPECT_EQ(Facts(source).seen.width, 480);
  source.crop = image::CropRect{0, 0, 0.5, 0.5};
  EXPECT_EQ(Facts(source).seen.pixels(), 480 * 320 / 4);
}

TEST(ImageFactsTest, ForeseesTheMemoryOfEachFormat) {
  for (const auto& [width, height] :
       {std::make_pair(1, 1), std::make_pair(31, 17),
        std::make_pair(1601, 1203), std::make_pair(601, 4001),
        std::make_pair(16000, 40)}) {
    SCOPED_TRACE(absl::StrCat(width, " x ", height));
    const image::RgbImage picture = server::Gradient(width, height);
    const std::string jpeg = server::EncodeJpeg(picture);
    const std::string progressive =
        server::EncodeJpeg(width, height, 3, picture.data.data(),
                           [](jpeg_compress_struct& compress) {
                             jpeg_simple_progression(&compress);
                           });
    for (const std::string& bytes :
         {jpeg, Rotated(jpeg), progressive, Rotated(progressive),
          server::EncodePng(picture), server::EncodeWebp(picture, true),
          server::EncodeWebp(picture, false)}) {
      ExpectForeseenOfAll(Encoded(bytes));
    }
    image::PixelBuffer pixels;
    pixels.width = width;
    pixels.height = height;
    pixels.data = {reinterpret_cast<const char*>(picture.data.data()),
                   picture.data.size()};
    image::ImageSource source;
    source.source = pixels;
    ExpectForeseenOfAll(source);
  }
}

// Decodes the picture, then makes the inputs of its parts one after another.
int64_t PeakOfParts(const image::ImageSource& source, const ImageFacts& facts,
                    const model::ModelConfig& model) {
  const auto make = [&] {
    const auto picture = image::DecodePicture(source, image::ImageLimits(),
                                              image::DecodeWatch());
    ASSERT_TRUE(picture.ok()) << picture.status();
    for (const PartFacts& part : facts.parts) {
      const auto input = image::MakeInput(picture->rgb, part.region, model,
                                          std::nullopt, image::DecodeWatch());
      ASSERT_TRUE(input.ok()) << input.status();
      EXPECT_EQ(input->bytes(), part.input_bytes);
    }
  };
  make();  // Libraries allocate their caches here.
  return PeakOfHeap(make);
}

// Checks the picture as a PNG, as a JPEG and as pixels.
void ForEachFormat(
    const image::RgbImage& picture,
    const std::function<void(const image::ImageSource&)>& check) {
  for (const std::string& bytes :
       {server::EncodePng(picture), server::EncodeJpeg(picture)}) {
    check(Encoded(bytes));
  }
  image::PixelBuffer pixels;
  pixels.width = picture.width;
  pixels.height = picture.height;
  pixels.data = {reinterpret_cast<const char*>(picture.data.data()),
                 picture.data.size()};
  image::ImageSource source;
  source.source = pixels;
  check(source);
}

TEST(ImageFactsTest, PartsAreMadeOneAfterAnotherOfAWholePicture) {
  const image::RgbImage picture = server::Gradient(1601, 1203);
  for (const model::ModelConfig& model : {Classifier(), Detector()}) {
    ForEachFormat(picture, [&](const image::ImageSource& source) {
      ImageFacts facts = Facts(source, model);
      facts.parts = {PartOf(model, {0, 0, 10, 1203}),
                     PartOf(model, {0, 0, 1601, 1203})};
      RequestLimits limits;
      ASSERT_TRUE(ValidateParts(source, model, limits, &facts).ok());
      EXPECT_EQ(facts.input_bytes,
                facts.parts[0].input_bytes + facts.parts[1].input_bytes);
      const int64_t peak = PeakOfParts(source, facts, model);
      EXPECT_GE(facts.decode_bytes, peak);
      EXPECT_LE(facts.decode_bytes, peak / 2 * 3);
      limits.max_decode_bytes = facts.decode_bytes;
      EXPECT_TRUE(ValidateParts(source, model, limits, &facts).ok());
      --limits.max_decode_bytes;
      const absl::Status refused = ValidateParts(source, model, limits, &facts);
      EXPECT_EQ(server::GetErrorDetail(refused).reason, "IMAGE_TOO_LARGE");
    });
  }
}

TEST(ImageFactsTest, APictureThatIsKeptForItsCropsIsThereAsAWhole) {
  const image::RgbImage picture = server::Gradient(1601, 1203);
  for (const model::ModelConfig& model : {Classifier(), Detector()}) {
    ForEachFormat(picture, [&](const image::ImageSource& source) {
      ImageFacts facts = Facts(source, model);
      RequestLimits limits;
      ASSERT_TRUE(ValidateKeptPicture(source, model, limits, &facts).ok());
      EXPECT_EQ(facts.picture_bytes, 3 * 1601 * 1203);
      const auto make = [&] {
        image::RgbImage kept;
        ASSERT_TRUE(image::MakeInput(source, model, std::nullopt,
                                     image::ImageLimits(), nullptr, nullptr,
                                     &kept)
                        .ok());
        EXPECT_EQ(kept.data.size(), picture.data.size());
      };
      make();  // Libraries allocate their caches here.
      const int64_t peak = PeakOfHeap(make);
      EXPECT_GE(facts.decode_bytes, peak);
      EXPECT_LE(facts.decode_bytes, peak / 2 * 3);
      limits.max_decode_bytes = facts.decode_bytes - 1;
      const absl::Status refused =
          ValidateKeptPicture(source, model, limits, &facts);
      EXPECT_EQ(server::GetErrorDetail(refused).reason, "IMAGE_TOO_LARGE");
    });
  }
}

TEST(ImageFactsTest, RefusesWhatCannotBeDecodedInTheMemoryThatThereIs) {
  const std::string png = server::EncodePng(server::Gradient(480, 320));
  RequestLimits limits;
  ImageFacts facts;
  limits.max_decode_bytes = Facts(Encoded(png)).decode_bytes;
  EXPECT_TRUE(ValidateImage(Encoded(png), Classifier(), limits, &facts).ok());
  --limits.max_decode_bytes;
  const absl::Status status =
      ValidateImage(Encoded(png), Classifier(), limits, &facts);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server::GetErrorDetail(status).reason, "IMAGE_TOO_LARGE");
  EXPECT_EQ(server::GetErrorDetail(status).field, ".encoded");
}

TEST(ImageFactsTest, APartOfADecodedPictureTakesItsOwnMemory) {
  const image::RgbImage picture = server::Gradient(90, 60);
  image::ImageSource source;
  source.source = image::PictureRegion{&picture, {10, 20, 40, 30}};
  const ImageFacts facts = Facts(source);
  EXPECT_EQ(facts.format, "pixels");
  EXPECT_EQ(facts.seen.width, 40);
  EXPECT_EQ(facts.seen.height, 30);
  EXPECT_GE(facts.decode_bytes, 3 * 40 * 30 + kInput);
}

TEST(ImageFactsTest, ATensorIsTheInput) {
  const std::string data(3 * kSide * kSide * 4, '\0');
  const std::vector<int64_t> shape = {3, kSide, kSide};
  image::ImageSource source;
  source.source =
      image::InputTensor{image::InputTensor::Type::kFloat32, shape, data};
  EXPECT_EQ(Facts(source).format, "tensor");
  EXPECT_EQ(Facts(source).pixels, kSide * kSide);
  EXPECT_EQ(Facts(source).seen.width, kSide);
  EXPECT_EQ(Facts(source).input_bytes, 4 * kInput);
  EXPECT_EQ(Facts(source).decode_bytes, 4 * kInput);
  EXPECT_EQ(Facts(source).key.type, batching::ImageType::kFloat32);
  const absl::string_view pixels(data.data(), kInput);
  source.source =
      image::InputTensor{image::InputTensor::Type::kUint8, shape, pixels};
  EXPECT_EQ(Facts(source).input_bytes, kInput);
  EXPECT_EQ(Facts(source).key.type, batching::ImageType::kUint8);
}

TEST(ImageFactsTest, TheKeyHasTheModelsPadding) {
  model::ModelConfig model = Detector();
  model.pad_multiple = 32;
  const std::string wide = server::EncodeJpeg(server::Gradient(400, 100));
  const batching::BatchKey key = Facts(Encoded(wide), model).key;
  EXPECT_EQ(key.height, 128);
  EXPECT_EQ(key.width, 480);
}

TEST(ImageFactsTest, ASourceThatIsMissingIsNamed) {
  ImageFacts facts;
  const absl::Status status = ValidateImage(image::ImageSource(), Classifier(),
                                            RequestLimits(), &facts);
  EXPECT_EQ(server::GetErrorDetail(status).reason, "INVALID_FIELD");
  EXPECT_EQ(facts.format, "unknown");
}

}  // namespace
}  // namespace sfmamba::prediction
