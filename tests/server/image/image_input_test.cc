#include "server/image/image_input.h"

#include <cstdint>
#include <cstdio>  // jpeglib.h needs FILE and size_t.
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/image_decoder.h"
#include "gtest/gtest.h"
#include "jpeglib.h"
#include "server/errors/error.h"
#include "tests/server/picture.h"
#include "tests/testing/allocations.h"

namespace sfmamba::image {
namespace {

constexpr int kSide = 16;
constexpr int kLargeSide = 224;

model::ModelConfig Classifier() {
  model::ModelConfig model;
  model.image_size = kSide;
  model.crop_pct = 1;
  return model;
}

model::ModelConfig Detector() {
  model::ModelConfig model;
  model.resize = model::Resize::kKeepRatio;
  model.short_side = 24;
  model.long_side = 40;
  return model;
}

PreparedInput Make(const ImageSource& image, const model::ModelConfig& model) {
  absl::StatusOr<PreparedInput> input =
      MakeInput(image, model, std::nullopt, ImageLimits());
  EXPECT_TRUE(input.ok()) << input.status();
  return input.ok() ? *std::move(input) : PreparedInput();
}

class ImageInputTest : public testing::Test {
 protected:
  // Stores `file`, because a source is only a view.
  ImageSource Encoded(std::string file) {
    file_ = std::move(file);
    ImageSource image;
    image.source = EncodedImage{file_};
    return image;
  }
  ImageSource Grey(int width, int height) {
    file_ = std::string(width * height, 'x');
    PixelBuffer pixels;
    pixels.width = width;
    pixels.height = height;
    pixels.format = PixelBuffer::Format::kGray8;
    pixels.data = file_;
    ImageSource image;
    image.source = pixels;
    return image;
  }

  std::string file_;
};

TEST_F(ImageInputTest, AClassifiersInputHasItsSize) {
  const PreparedInput input = Make(Grey(48, 32), Classifier());
  EXPECT_EQ(input.image.width, kSide);
  EXPECT_EQ(input.image.height, kSide);
  EXPECT_EQ(input.image.pixels.size(), 3 * kSide * kSide);
}

// A part of a picture gives the same input as if it were sent alone.
TEST_F(ImageInputTest, APartIsResizedAsAPictureOfItsOwn) {
  const RgbImage picture = server::Gradient(90, 70);
  ImageSource image = Encoded(server::EncodePng(picture));
  image.crop = CropRect{0.1f, 0.1f, 1, 1};  // The crop begins at (9, 7).
  const absl::StatusOr<DecodedPicture> decoded =
      DecodePicture(image, ImageLimits(), DecodeWatch());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->seen.width, 81);
  EXPECT_EQ(decoded->frame().left, 9);
  EXPECT_EQ(decoded->frame().picture.width, 90);
  for (const PixelRect& region :
       {PixelRect{0, 0, 81, 63}, PixelRect{11, 20, 30, 24},
        PixelRect{80, 62, 1, 1}, PixelRect{3, 0, 24, 24}}) {
    for (const model::ModelConfig& model : {Classifier(), Detector()}) {
      const PixelRect place = {region.left + 9, region.top + 7, region.width,
                               region.height};
      const absl::StatusOr<ImageBuffer> part =
          MakeInput(decoded->rgb, place, model, std::nullopt, DecodeWatch());
      ASSERT_TRUE(part.ok()) << part.status();
      const std::string alone = server::EncodePng(server::Crop(picture, place));
      ImageSource own;
      own.source = EncodedImage{alone};
      const PreparedInput expected = Make(own, model);
      EXPECT_EQ(part->pixels, expected.image.pixels);
      EXPECT_EQ(part->width, expected.image.width);
      EXPECT_EQ(part->original_width, region.width);
      EXPECT_EQ(part->original_height, region.height);
    }
  }
}

// The shape of a picture, and a function that adjusts its encoder.
struct Shape {
  const char* name;
  int width, height;
  std::function<void(jpeg_compress_struct&)> adjust;
};

TEST_F(ImageInputTest, AClassifiersJpegIsResizedAsItIsDecoded) {
  const auto progressive = [](jpeg_compress_struct& compress) {
    jpeg_simple_progression(&compress);
  };
  const Shape kShapes[] = {
      {"small", 5, 9, {}},
      {"of the input's size", kLargeSide, kLargeSide, {}},
      {"usual", 600, 400, {}},
      {"progressive", 600, 400, progressive},
      {"scaled down", 2000, 1501, {}},
      {"wide", 16384, 3, {}},
      {"narrow", 7, 9001, {}},
  };
  model::ModelConfig model = Classifier();
  model.image_size = kLargeSide;
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    const RgbImage picture = server::Gradient(shape.width, shape.height);
    const ImageSource image = Encoded(server::EncodeJpeg(
        shape.width, shape.height, 3, picture.data.data(), shape.adjust));
    const absl::StatusOr<RgbImage> decoded = base::DecodeImage(
        file_, ImageLimits(), true, kLargeSide, DecodeWatch());
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    PreprocessOptions options;
    options.size = options.resize_size = kLargeSide;
    for (const ResizeMode mode : {ResizeMode::kCenterCrop, ResizeMode::kStretch,
                                  ResizeMode::kLetterbox}) {
      options.mode = mode;
      const auto header = base::ReadImageHeader(file_, ImageLimits());
      absl::StatusOr<PreparedInput> input;
      const int64_t peak = PeakOfHeap(
          [&] { input = MakeInput(image, model, mode, ImageLimits()); });
      ASSERT_TRUE(input.ok()) << input.status();
      EXPECT_EQ(input->image.pixels, Preprocess(*decoded, options)->pixels);
      EXPECT_EQ(input->frame.picture.width, decoded->width);
      EXPECT_EQ(input->frame.picture.height, decoded->height);
      EXPECT_LE(peak, InputMemory(image, *header, model));
    }
  }
}

// Decoding and resizing alternate row by row. Nevertheless, the time of each is
// measured separately.
TEST_F(ImageInputTest, DecodingAndResizingHaveATimeEach) {
  const ImageSource image =
      Encoded(server::EncodeJpeg(server::Gradient(900, 900)));
  const auto input =
      MakeInput(image, Classifier(), std::nullopt, ImageLimits());
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_GT(input->decode, absl::ZeroDuration());
  EXPECT_GT(input->preprocess, absl::ZeroDuration());
}

TEST_F(ImageInputTest, ADecodedPictureAndATensorHaveATimeEachToo) {
  const PreparedInput png =
      Make(Encoded(server::EncodePng(server::Gradient(90, 90))), Classifier());
  EXPECT_GT(png.decode, absl::ZeroDuration());
  EXPECT_GT(png.preprocess, absl::ZeroDuration());
  const std::vector<int64_t> shape = {3, 2, 4};
  const std::string data(3 * 2 * 4, 'x');
  ImageSource tensor;
  tensor.source = InputTensor{InputTensor::Type::kUint8, shape, data};
  EXPECT_GT(Make(tensor, Detector()).decode, absl::ZeroDuration());
}

// A classifier's input may show only a part of the picture. Clients need to
// know this part, because they draw heat maps over it.
TEST_F(ImageInputTest, AClassifiersInputSaysWhichPartOfThePictureItIs) {
  const RgbImage picture = server::Gradient(64, 32);
  model::ModelConfig stretching = Classifier();
  stretching.resize = model::Resize::kStretch;
  for (const std::string& file :
       {server::EncodeJpeg(picture), server::EncodePng(picture)}) {
    const CropRect middle = Make(Encoded(file), Classifier()).frame.input;
    EXPECT_FLOAT_EQ(middle.x_min, 0.25f);
    EXPECT_FLOAT_EQ(middle.x_max, 0.75f);
    EXPECT_FLOAT_EQ(middle.y_min, 0);
    EXPECT_FLOAT_EQ(middle.y_max, 1);
    const CropRect all = Make(Encoded(file), stretching).frame.input;
    EXPECT_FLOAT_EQ(all.x_min, 0);
    EXPECT_FLOAT_EQ(all.x_max, 1);
  }
}

TEST_F(ImageInputTest, WhatIsSeenHasItsOwnSizeAtWhateverSizeItIsDecoded) {
  const std::string jpeg = server::EncodeJpeg(server::Gradient(512, 256));
  ImageSource image = Encoded(jpeg);
  const PictureFrame whole = Make(image, Classifier()).frame;
  EXPECT_LT(whole.picture.width, 512);
  EXPECT_EQ(whole.seen.width, 512);
  EXPECT_EQ(whole.seen.height, 256);
  image.crop = CropRect{0, 0, 0.5f, 1};
  const PictureFrame left = Make(image, Classifier()).frame;
  EXPECT_LT(left.picture.width, 512);
  EXPECT_EQ(left.seen.width, 256);
  EXPECT_EQ(left.seen.height, 256);
  const PictureFrame turned =
      Make(Encoded(server::WithExif(jpeg, server::ExifOrientation(6, true))),
           Classifier())
          .frame;
  EXPECT_EQ(turned.seen.width, 256);
  EXPECT_EQ(turned.seen.height, 512);
}

TEST_F(ImageInputTest, AnOrientationThatIsNotWantedChangesNothing) {
  const std::string jpeg = server::EncodeJpeg(server::Gradient(64, 32));
  const PreparedInput plain = Make(Encoded(jpeg), Classifier());
  ImageSource image =
      Encoded(server::WithExif(jpeg, server::ExifOrientation(6, true)));
  EXPECT_FALSE(Make(image, Classifier()).image.pixels == plain.image.pixels);
  image.apply_orientation = false;
  EXPECT_EQ(Make(image, Classifier()).image.pixels, plain.image.pixels);
}

TEST_F(ImageInputTest, APicturesMemoryIsForeseenWithinTheLimits) {
  const ImageSource image =
      Encoded(server::EncodePng(server::Gradient(40, 30)));
  ImageLimits limits;
  limits.max_side = 40;
  const auto bytes = PictureMemory(image, limits);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_GE(*bytes, 3 * 40 * 30);
  limits.max_side = 39;
  EXPECT_FALSE(PictureMemory(image, limits).ok());
}

TEST_F(ImageInputTest, ALargePictureIsNeverThereAsAWhole) {
  const RgbImage picture = server::Gradient(900, 900);
  const ImageSource image = Encoded(server::EncodeJpeg(picture));
  model::ModelConfig model = Classifier();
  model.image_size = 500;
  model.crop_pct = 1;
  const int64_t peak = PeakOfHeap([&] { Make(image, model); });
  EXPECT_LT(peak, 3 * 900 * 900 / 2 + 3 * 500 * 500);
}

TEST_F(ImageInputTest, ATruncatedJpegIsRefusedThoughItsFirstRowsAreThere) {
  std::string file = server::EncodeJpeg(server::Gradient(600, 400));
  const ImageSource image = Encoded(file.substr(0, file.size() * 3 / 4));
  EXPECT_EQ(MakeInput(image, Classifier(), std::nullopt, ImageLimits())
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ImageInputTest, ADetectorsInputSaysWhereItLiesInThePicture) {
  ImageSource image = Grey(100, 80);
  image.crop = CropRect{0.25f, 0.5f, 0.75f, 1.0f};
  const PreparedInput input = Make(image, Detector());
  EXPECT_EQ(input.frame.picture.width, 100);
  EXPECT_EQ(input.frame.picture.height, 80);
  EXPECT_EQ(input.frame.left, 25);
  EXPECT_EQ(input.frame.top, 40);
  EXPECT_EQ(input.image.original_width, 50);
  EXPECT_EQ(input.image.original_height, 40);
  EXPECT_EQ(input.image.width, 30);
  EXPECT_EQ(input.image.height, 24);
}

TEST_F(ImageInputTest, ATensorIsItsOwnPicture) {
  const std::vector<int64_t> shape = {3, 2, 4};
  const std::string data(3 * 2 * 4, 'x');
  ImageSource image;
  image.source = InputTensor{InputTensor::Type::kUint8, shape, data};
  const PreparedInput input = Make(image, Detector());
  EXPECT_EQ(input.image.original_height, 2);
  EXPECT_EQ(input.image.original_width, 4);
  EXPECT_EQ(input.frame.picture.height, 2);
  EXPECT_EQ(input.frame.picture.width, 4);
}

TEST_F(ImageInputTest, ATensorMayBeInPieces) {
  const std::vector<int64_t> shape = {3, 1, 2};
  ImageSource image;
  image.source =
      InputTensor{InputTensor::Type::kUint8, shape, {}, {"ab", "cde", "f"}};
  const PreparedInput input = Make(image, Detector());
  EXPECT_EQ(input.image.pixels,
            (std::vector<uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
}

TEST(CropInputTest, CopiesAPartOfPixelsAndOfValues) {
  ImageBuffer input;
  input.height = 3;
  input.width = 4;
  std::vector<uint8_t> all(3 * 3 * 4);
  std::iota(all.begin(), all.end(), 0);
  input.pixels = all;
  const PixelRect part = {1, 1, 2, 2};
  const ImageBuffer pixels = CropInput(input, part);
  EXPECT_EQ(pixels.height, 2);
  EXPECT_EQ(pixels.width, 2);
  EXPECT_EQ(pixels.original_width, 2);
  EXPECT_EQ(pixels.pixels, (std::vector<uint8_t>{15, 16, 17, 18, 19, 20, 27, 28,
                                                 29, 30, 31, 32}));
  EXPECT_FALSE(pixels.planar);
  EXPECT_TRUE(pixels.values.empty());
  input.planar = true;
  const ImageBuffer planes = CropInput(input, part);
  EXPECT_TRUE(planes.planar);
  EXPECT_EQ(planes.pixels, (std::vector<uint8_t>{5, 6, 9, 10, 17, 18, 21, 22,
                                                 29, 30, 33, 34}));
  input.planar = false;
  input.values.assign(all.begin(), all.end());
  input.pixels = {};
  EXPECT_EQ(CropInput(input, part).values,
            (std::vector<float>{5, 6, 9, 10, 17, 18, 21, 22, 29, 30, 33, 34}));
}

// A JPEG is decoded at a scale that makes the crop at least as large as the
// input.
TEST_F(ImageInputTest, ACropIsNotDecodedSmallerThanTheInput) {
  for (const CropRect& crop :
       {CropRect{0, 0, 1, 0.125f}, CropRect{0.5f, 0, 0.625f, 1}}) {
    ImageSource image = Encoded(server::EncodeJpeg(server::Gradient(512, 512)));
    image.crop = crop;
    const PreparedInput input = Make(image, Classifier());
    EXPECT_GE(input.image.original_height, kSide);
    EXPECT_GE(input.image.original_width, kSide);
    EXPECT_LT(input.frame.picture.height, 512) << "it could be scaled";
  }
}

TEST_F(ImageInputTest, AFullSizeIsDecodedWhateverTheInputNeeds) {
  ImageSource image = Encoded(server::EncodeJpeg(server::Gradient(512, 512)));
  EXPECT_LT(Make(image, Classifier()).image.original_height, 512);
  image.full_size = true;
  EXPECT_EQ(Make(image, Classifier()).image.original_height, 512);
}

TEST_F(ImageInputTest, PixelsThatTakeTooLongAreRefused) {
  ImageLimits limits;
  // The time limit is over before decoding begins.
  limits.max_decode_time = -absl::Seconds(1);
  const absl::Status status =
      MakeInput(Grey(48, 32), Classifier(), std::nullopt, limits).status();
  EXPECT_EQ(server::GetErrorDetail(status).reason, "IMAGE_DECODE_TIMEOUT");
  EXPECT_EQ(server::GetErrorDetail(status).field, ".pixels");
}

// The callback tells whether the picture is still wanted. Decoding grey pixels
// calls it only once. All later calls come from resizing, so the fifth call,
// which returns false, must end the resizing.
TEST_F(ImageInputTest, ResizingEndsOnceThePictureIsNotWanted) {
  const ImageSource image = Grey(3000, 3000);
  int looks = 0;
  const absl::Status status =
      MakeInput(image, Classifier(), std::nullopt, ImageLimits(), [&looks] {
        return ++looks < 5;
      }).status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST_F(ImageInputTest, ErrorsNameTheField) {
  const absl::Status status =
      MakeInput(Encoded("nothing"), Classifier(), std::nullopt, ImageLimits())
          .status();
  EXPECT_EQ(server::GetErrorDetail(status).reason, "IMAGE_FORMAT_UNSUPPORTED");
  EXPECT_EQ(server::GetErrorDetail(status).field, ".encoded");
}

}  // namespace
}  // namespace sfmamba::image
