#include "server/api/kserve/infer_outputs.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::kserve {
namespace {

using inference::packed::ModelInferResponse;

// Encodes `maps` as the outputs of a segmenter of 300 classes. Each map is two
// pixels wide and one pixel high.
ModelInferResponse AnswerMaps(const std::vector<std::string>& maps, bool raw) {
  model::ModelConfig model;
  model.task = model::VisionTask::kSegmentation;
  model.num_classes = 300;
  std::vector<WantedOutput> wanted;
  EXPECT_TRUE(ChooseOutputs({}, model, &wanted).ok());
  InferOutputs outputs(wanted, raw);
  outputs.Start(static_cast<int>(maps.size()));
  for (size_t i = 0; i < maps.size(); ++i) {
    v1::SegmentResult result;
    result.set_height(1);
    result.set_width(2);
    result.mutable_raw()->set_bytes_per_pixel(2);
    result.mutable_raw()->set_data(maps[i]);
    outputs.SetAnswer(static_cast<int>(i), {result, {}});
  }
  ModelInferResponse response;
  outputs.MoveTo(&response);
  return response;
}

TEST(InferOutputsTest, ClassesThatFitNoByteAreIntegers) {
  const std::vector<std::string> maps = {std::string("\x2b\x01\x00\x00", 4),
                                         std::string("\x07\x00\x2a\x01", 4)};
  const ModelInferResponse raw = AnswerMaps(maps, /*raw=*/true);
  EXPECT_EQ(raw.outputs(0).datatype(), "INT32");
  EXPECT_EQ(std::vector<int64_t>(raw.outputs(0).shape().begin(),
                                 raw.outputs(0).shape().end()),
            std::vector<int64_t>({2, 1, 2}));
  const int32_t classes[] = {299, 0, 7, 298};
  EXPECT_EQ(
      raw.raw_output_contents(0),
      std::string(reinterpret_cast<const char*>(classes), sizeof(classes)));
  inference::InferTensorContents contents;
  ASSERT_TRUE(contents.ParseFromString(AnswerMaps(maps, /*raw=*/false)
                                           .outputs(0)
                                           .contents()
                                           .SerializeAsString()));
  EXPECT_EQ(std::vector<int32_t>(contents.int_contents().begin(),
                                 contents.int_contents().end()),
            std::vector<int32_t>({299, 0, 7, 298}));
}

}  // namespace
}  // namespace sfmamba::kserve
