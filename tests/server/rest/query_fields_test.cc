#include "server/rest/query_fields.h"

#include <map>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rest {
namespace {

using Query = std::multimap<std::string, std::string>;

absl::Status Set(const Query& query, v1::DetectRequest* request) {
  v1::Image* image = request->add_images();
  return SetFromQuery(query, {request, request->mutable_params(),
                              request->mutable_options(), image});
}

v1::DetectRequest Good(const Query& query) {
  v1::DetectRequest request;
  const absl::Status status = Set(query, &request);
  EXPECT_TRUE(status.ok()) << status;
  return request;
}

std::string ErrorOf(const std::string& name, const std::string& value) {
  v1::DetectRequest request;
  const absl::Status status = Set({{name, value}}, &request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
      << name << "=" << value;
  EXPECT_EQ(server::GetErrorDetail(status).reason, "INVALID_FIELD");
  EXPECT_EQ(server::GetErrorDetail(status).field, name);
  return std::string(status.message());
}

TEST(QueryFieldsTest, SetsFieldsWhereverTheyAre) {
  const v1::DetectRequest request = Good({{"request_id", "a b"},
                                          {"score_threshold", "0.25"},
                                          {"max_detections", "7"},
                                          {"mask_encoding", "COCO_RLE"},
                                          {"class_agnostic_nms", "true"},
                                          {"priority", "LOW"},
                                          {"max_queue_wait", "1.5s"},
                                          {"include_timing", "false"},
                                          {"orientation", "IGNORE"},
                                          {"crop.x_max", "0.5"},
                                          {"crop.y_max", "1"}});
  EXPECT_EQ(request.request_id(), "a b");
  EXPECT_EQ(request.params().score_threshold(), 0.25f);
  EXPECT_EQ(request.params().max_detections(), 7);
  EXPECT_EQ(request.params().mask_encoding(), v1::DetectParams::COCO_RLE);
  EXPECT_TRUE(request.params().class_agnostic_nms());
  EXPECT_EQ(request.options().priority(), v1::RequestOptions::LOW);
  EXPECT_EQ(request.options().max_queue_wait().seconds(), 1);
  EXPECT_EQ(request.options().max_queue_wait().nanos(), 500'000'000);
  EXPECT_FALSE(request.options().include_timing());
  EXPECT_EQ(request.images(0).orientation(), v1::Image::IGNORE);
  EXPECT_EQ(request.images(0).crop().x_max(), 0.5f);
  EXPECT_EQ(request.images(0).crop().y_max(), 1.0f);
}

TEST(QueryFieldsTest, NamesMayBeThoseOfJsonAndOfThePathToAField) {
  const v1::DetectRequest request = Good({{"maxDetections", "7"},
                                          {"options.priority", "HIGH"},
                                          {"crop.xMax", "0.5"}});
  EXPECT_EQ(request.params().max_detections(), 7);
  EXPECT_EQ(request.options().priority(), v1::RequestOptions::HIGH);
  EXPECT_EQ(request.images(0).crop().x_max(), 0.5f);
}

TEST(QueryFieldsTest, ListsMayBeOneOrManyParameters) {
  const v1::DetectRequest request =
      Good({{"class_filter", "3,1"}, {"class_filter", "2"}});
  ASSERT_EQ(request.params().class_filter_size(), 3);
  EXPECT_EQ(request.params().class_filter(0), 3);
  EXPECT_EQ(request.params().class_filter(1), 1);
  EXPECT_EQ(request.params().class_filter(2), 2);
}

TEST(QueryFieldsTest, ATextMayBeEmpty) {
  v1::DetectRequest request;
  request.set_request_id("other");
  EXPECT_TRUE(Set({{"request_id", ""}}, &request).ok());
  EXPECT_EQ(request.request_id(), "");
}

TEST(QueryFieldsTest, AFloatHasTheBitsThatJsonGives) {
  EXPECT_EQ(Good({{"score_threshold", "0.1"}}).params().score_threshold(),
            0.1f);
  EXPECT_EQ(Good({{"score_threshold", "1e-7"}}).params().score_threshold(),
            1e-7f);
}

TEST(QueryFieldsTest, RefusesUnknownNames) {
  for (const char* name :
       {"", ".", "top_k", "score_treshold", "crop", "crop.", "crop..x_min",
        "crop.z", "images", "images.crop", "encoded", "pixels.width",
        "tensor.data", "tensor", "max_queue_wait.seconds", "params",
        "score_threshold.x", "orientation.x"}) {
    EXPECT_TRUE(
        absl::StrContains(ErrorOf(name, "1"), "there is no such parameter"))
        << name;
  }
}

TEST(QueryFieldsTest, RefusesOtherValues) {
  const std::pair<const char*, const char*> kBad[] = {
      {"max_detections", ""},
      {"max_detections", "1.5"},
      {"max_detections", "x"},
      {"max_detections", "99999999999"},
      {"class_filter", ""},
      {"class_filter", "1,"},
      {"class_filter", "1 2"},
      {"score_threshold", ""},
      {"score_threshold", "half"},
      {"include_timing", ""},
      {"include_timing", "1"},
      {"include_timing", "True"},
      {"priority", "high"},
      {"priority", "1"},
      {"priority", ""},
      {"max_queue_wait", "1"},
      {"max_queue_wait", "inf"},
      {"max_queue_wait", "soon"},
      {"request_id", "\xff"},
      {"crop.x_min", "left"},
  };
  for (const auto& [name, value] : kBad) {
    EXPECT_TRUE(absl::StrContains(ErrorOf(name, value), "expected"))
        << name << "=" << value;
  }
}

TEST(QueryFieldsTest, ADurationIsAtMostTheLongestOfProtobuf) {
  EXPECT_EQ(Good({{"max_queue_wait", "315576000000s"}})
                .options()
                .max_queue_wait()
                .seconds(),
            315'576'000'000);
  for (const char* longer : {"315576000001s", "-315576000001s"}) {
    EXPECT_TRUE(
        absl::StrContains(ErrorOf("max_queue_wait", longer), "expected"));
  }
}

TEST(QueryFieldsTest, AnErrorSaysWhatWouldDo) {
  EXPECT_EQ(ErrorOf("priority", "urgent"),
            "got \"urgent\", expected one of HIGH, NORMAL, LOW");
  EXPECT_EQ(ErrorOf("max_queue_wait", "1"),
            "got \"1\", expected a duration such as 1.5s");
}

TEST(QueryFieldsTest, AnErrorListsTheParameters) {
  EXPECT_EQ(ErrorOf("topk", "1"),
            "there is no such parameter, expected one of model, request_id, "
            "score_threshold, nms_iou_threshold, max_detections, class_filter, "
            "mask_encoding, class_agnostic_nms, tiles.width, tiles.height, "
            "tiles.overlap, tiles.without_picture, tiles.merge, tiles.match, "
            "tiles.match_threshold, tiles.max_tiles, crops.model, crops.top_k, "
            "crops.min_score, crops.include_embedding, crops.margin, "
            "priority, max_queue_wait, "
            "include_timing, allow_partial_results, resize, validate_only, "
            "crop.x_min, crop.y_min, crop.x_max, crop.y_max, orientation");
}

TEST(QueryFieldsTest, OneFieldIsSetOnce) {
  v1::DetectRequest request;
  EXPECT_TRUE(absl::StrContains(
      Set({{"max_detections", "1"}, {"max_detections", "1"}}, &request)
          .message(),
      "twice"));
  v1::DetectRequest other;
  EXPECT_FALSE(
      Set({{"max_detections", "1"}, {"maxDetections", "2"}}, &other).ok());
}

TEST(QueryFieldsTest, AnErrorShowsLittleOfWhatIsLong) {
  v1::DetectRequest request;
  const absl::Status status =
      Set({{std::string(100'000, '\xfe'), "x"}}, &request);
  EXPECT_LT(status.message().size(), 1000);
  const std::string shown(64, 'x');
  EXPECT_EQ(server::GetErrorDetail(Set({{shown + "y", "1"}}, &request)).field,
            shown);
  EXPECT_EQ(ErrorOf("max_detections", shown + "y"),
            "got \"" + shown + "\", expected a whole number");
}

}  // namespace
}  // namespace sfmamba::rest
