// Tests that the client sends the same pixels that the server would compute.
#include "client/picture/resize.h"

#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/config.h"
#include "server/image/image_input.h"
#include "tests/server/picture.h"

namespace sfmamba::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

model::ModelConfig Config(int side, double crop_pct, bool stretch = false) {
  model::ModelConfig config;
  config.image_size = side;
  config.crop_pct = crop_pct;
  if (stretch) config.resize = model::Resize::kStretch;
  return config;
}

// Returns the model as GetModel() describes it.
v1::Model ModelOf(const model::ModelConfig& config) {
  v1::Model model;
  model.set_name("models/m/versions/1");
  model.set_task(v1::Model::CLASSIFICATION);
  v1::InputSpec& input = *model.mutable_input();
  input.add_buckets()->set_height(config.image_size);
  input.mutable_buckets(0)->set_width(config.image_size);
  input.set_resize(config.resize == model::Resize::kStretch ? "stretch"
                                                            : "center_crop");
  input.set_resize_size(config.resize_size());
  return model;
}

void ExpectTheServersPixels(const model::ModelConfig& config,
                            const std::string& bytes) {
  image::ImageSource source;
  source.source = image::EncodedImage{bytes};
  const auto server =
      image::MakeInput(source, config, std::nullopt, image::ImageLimits());
  ASSERT_TRUE(server.ok()) << server.status();
  const absl::StatusOr<v1::Image> client = ResizeFor(ModelOf(config), bytes);
  ASSERT_TRUE(client.ok()) << client.status();
  const v1::Tensor& tensor = client->tensor();
  EXPECT_EQ(tensor.data_type(), v1::Tensor::UINT8);
  EXPECT_THAT(tensor.shape(),
              ElementsAre(3, config.image_size, config.image_size));
  const auto& pixels = server->image.pixels;
  ASSERT_EQ(tensor.data().size(), pixels.size());
  const size_t plane = pixels.size() / 3;
  for (size_t i = 0; i < pixels.size(); ++i) {
    ASSERT_EQ(static_cast<uint8_t>(tensor.data()[i % 3 * plane + i / 3]),
              pixels[i])
        << "byte " << i;
  }
}

image::RgbImage Noise(int width, int height, std::mt19937& random) {
  image::RgbImage image;
  image.width = width;
  image.height = height;
  image.data.resize(size_t{3} * width * height);
  for (uint8_t& byte : image.data) byte = random();
  return image;
}

TEST(ResizeForTest, HasTheServersPixelsOfAnySize) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const int width = 1 + random() % 90, height = 1 + random() % 90;
    const model::ModelConfig config =
        Config(1 + random() % 60, i % 3 == 0 ? 1 : 0.875, i % 4 == 0);
    SCOPED_TRACE(absl::StrCat(width, " x ", height, " to ",
                              config.resize_size(), ", ", config.image_size));
    ExpectTheServersPixels(config,
                           server::EncodePng(Noise(width, height, random)));
  }
}

TEST(ResizeForTest, HasTheServersPixelsOfEveryFormat) {
  const image::RgbImage image = server::Gradient(700, 500);
  for (const bool stretch : {false, true}) {
    const model::ModelConfig config = Config(56, 0.9, stretch);
    // The JPEG is so large that it is decoded at a smaller scale.
    const std::string jpeg = server::EncodeJpeg(image);
    ExpectTheServersPixels(config, jpeg);
    ExpectTheServersPixels(config, server::EncodeWebp(image, false));
    ExpectTheServersPixels(config, server::EncodeWebp(image, true));
    for (int orientation = 2; orientation <= 8; ++orientation) {
      ExpectTheServersPixels(
          config,
          server::WithExif(jpeg, server::ExifOrientation(orientation, true)));
    }
  }
}

TEST(ResizeForTest, IsLessToSend) {
  std::mt19937 random(1);
  const std::string png = server::EncodePng(Noise(300, 200, random));
  const auto image = ResizeFor(ModelOf(Config(64, 1)), png);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_GT(png.size(), 180'000);
  EXPECT_LT(image->ByteSizeLong(), 12'350);
}

TEST(ResizeForTest, RefusesWhatIsNoPicture) {
  const v1::Model model = ModelOf(Config(56, 1));
  const std::string png = server::EncodePng(server::Gradient(60, 45));
  for (const std::string& bytes :
       {std::string(), std::string("GIF89a"), png.substr(0, png.size() / 2)}) {
    const absl::Status status = ResizeFor(model, bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
}

TEST(ResizeForTest, RefusesModelsThatSayNoSizes) {
  const std::string png = server::EncodePng(server::Gradient(60, 45));
  const v1::Model good = ModelOf(Config(56, 1));
  v1::Model models[] = {good, good, good, good, good, good};
  models[0].clear_input();  // Without an input, the model is not READY.
  models[1].set_task(v1::Model::DETECTION);
  models[2].mutable_input()->set_resize("keep_ratio");
  models[3].mutable_input()->set_resize_size(55);
  models[4].mutable_input()->mutable_buckets(0)->set_width(57);
  models[5].mutable_input()->set_resize_size(1 << 30);
  models[5].mutable_input()->mutable_buckets(0)->set_width(1 << 30);
  models[5].mutable_input()->mutable_buckets(0)->set_height(1 << 30);
  for (const v1::Model& model : models) {
    const absl::Status status = ResizeFor(model, png).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr("models/m/versions/1"));
  }
}

}  // namespace
}  // namespace sfmamba::client
