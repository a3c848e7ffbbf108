#include "client/commands/inputs.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::client {
namespace {

v1::Model ModelOfSize(int height, int width) {
  v1::Model model;
  model.set_name("models/m");
  v1::InputSpec::Size* size = model.mutable_input()->add_buckets();
  size->set_height(height);
  size->set_width(width);
  return model;
}

TEST(SyntheticTensorTest, FloatsLieBetweenMinusTwoAndTwo) {
  const auto image = SyntheticTensor(ModelOfSize(40, 50), v1::Tensor::FP32, 1);
  ASSERT_TRUE(image.ok()) << image.status();
  const v1::Tensor& tensor = image->tensor();
  EXPECT_EQ(tensor.data_type(), v1::Tensor::FP32);
  EXPECT_EQ(std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end()),
            (std::vector<int64_t>{3, 40, 50}));
  std::vector<float> values(3 * 40 * 50);
  ASSERT_EQ(tensor.data().size(), values.size() * sizeof(float));
  std::memcpy(values.data(), tensor.data().data(), tensor.data().size());
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -2);
  EXPECT_LT(*low, -1.9);
  EXPECT_LT(*high, 2);
  EXPECT_GT(*high, 1.9);
}

TEST(SyntheticTensorTest, TheSeedDecides) {
  const v1::Model model = ModelOfSize(4, 6);
  const auto data = [&model](uint64_t seed) {
    return SyntheticTensor(model, v1::Tensor::UINT8, seed)->tensor().data();
  };
  EXPECT_EQ(data(1).size(), 3 * 4 * 6);
  EXPECT_EQ(data(1), data(1));
  EXPECT_NE(data(1), data(2));
}

TEST(SyntheticTensorTest, OtherTypesAndModelsWithoutASizeAreRefused) {
  EXPECT_EQ(
      SyntheticTensor(ModelOfSize(4, 6), v1::Tensor::FP16, 1).status().code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SyntheticTensor(v1::Model(), v1::Tensor::FP32, 1).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(ReadFileTest, GivesTheBytesOrNamesTheFile) {
  const std::string path = testing::TempDir() + "/input";
  for (const std::string& bytes : {std::string(), std::string("a\0\n", 3)}) {
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_EQ(*ReadFile(path), bytes);
  }
  for (const std::string& other : {path + ".not", testing::TempDir()}) {
    const absl::Status status = ReadFile(other).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << other;
    EXPECT_NE(status.message().find(other), std::string::npos);
  }
}

}  // namespace
}  // namespace sfmamba::client
