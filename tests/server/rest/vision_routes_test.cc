// Tests the requests and answers of REST.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/status.pb.h"
#include "tests/server/rest/vision_routes_fixture.h"

namespace sfmamba::rest {
namespace {

TEST_F(VisionRoutesTest, APictureIsClassified) {
  http::HttpRequest request = PictureRequest();
  request.query = {{"top_k", "3"},
                   {"score_type", "LOGIT"},
                   {"request_id", "id-1"},
                   {"include_timing", "true"}};
  const v1::ClassifyResponse response = Classify(std::move(request));
  EXPECT_EQ(type_, "application/json");
  ASSERT_EQ(response.results_size(), 1);
  ASSERT_EQ(response.results(0).categories_size(), 3);
  EXPECT_GT(response.results(0).categories(0).score(),
            response.results(0).categories(2).score());
  EXPECT_EQ(response.model(), "models/fake/versions/3");
  EXPECT_EQ(response.request_id(), "id-1");
  EXPECT_EQ(response.timing().batch_size(), 1);
  EXPECT_EQ(response.timing().device(), "fake");
}

TEST_F(VisionRoutesTest, AllFormsOfARequestSayTheSame) {
  const http::HttpRequest picture = PictureRequest();
  v1::ClassifyRequest message;
  message.add_images()->set_encoded(picture.body);
  message.mutable_params()->set_top_k(10);
  std::string json;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(message, &json).ok());
  http::HttpRequest in_query = picture;
  in_query.query = {{"top_k", "10"}};
  const std::string expected = Ask(std::move(in_query));
  const std::string path = "/v1/models/fake:classify";
  EXPECT_EQ(Ask(RequestOf("POST", path, "application/json", json)), expected);
  EXPECT_EQ(
      Ask(RequestOf("POST", path, "application/json; charset=utf-8", json)),
      expected);
  for (const char* type : {"application/x-protobuf", "application/protobuf",
                           "Application/X-Protobuf ; messageType=a"}) {
    EXPECT_EQ(Ask(RequestOf("POST", path, type, message.SerializeAsString())),
              expected)
        << type;
  }
  // For these content types, the first bytes decide whether the body is a
  // picture or JSON.
  for (const char* type :
       {"", "application/octet-stream", "image/jpeg", "text/plain",
        "application/x-www-form-urlencoded", "application/json",
        "application/x-protobuf", "multipart/form-data"}) {
    http::HttpRequest other = RequestOf("PUT", path, type, picture.body);
    other.query = {{"top_k", "10"}};
    EXPECT_EQ(Ask(std::move(other)), expected) << type;
  }
  EXPECT_EQ(Ask(RequestOf("POST", path, "application/x-www-form-urlencoded",
                          "\n" + json)),
            expected);
}

// Returns a part of a form whose boundary is "b".
std::string Part(const std::string& disposition, const std::string& content) {
  return absl::StrCat("--b\r\nContent-Disposition: form-data; ", disposition,
                      "\r\nContent-Type: text/plain\r\n\r\n", content, "\r\n");
}

TEST_F(VisionRoutesTest, AFormHasPicturesAndFields) {
  const std::string small = PictureRequest().body;
  const std::string large = server::EncodePng(server::Gradient(80, 70));
  http::HttpRequest request = RequestOf(
      "POST", "/v1/models/fake:classify", "multipart/form-data; boundary=b",
      absl::StrCat(Part("name=\"image\"; filename=\"a;b.png\"", small),
                   Part("name=top_k", "3"), Part("name=\"image\"", large),
                   Part("name=\"crop.x_max\"", "0.5"), "--b--\r\n"));
  request.query = {{"request_id", "form"}};
  const v1::ClassifyResponse response = Classify(std::move(request));
  EXPECT_EQ(response.request_id(), "form");
  ASSERT_EQ(response.results_size(), 2);
  v1::ClassifyRequest message;
  for (const std::string& picture : {small, large}) {
    message.add_images()->set_encoded(picture);
    message.mutable_images()->rbegin()->mutable_crop()->set_x_max(0.5);
  }
  message.mutable_params()->set_top_k(3);
  message.set_request_id("form");
  EXPECT_EQ(
      Classify(RequestOf("POST", "/v1/models/fake:classify",
                         "application/x-protobuf", message.SerializeAsString()))
          .SerializeAsString(),
      response.SerializeAsString());
}

TEST_F(VisionRoutesTest, FormsThatAskNothingAreRefused) {
  const auto refuse = [this](const std::string& body, const std::string& part) {
    ExpectRefused(RequestOf("POST", "/v1/models/fake:classify",
                            "multipart/form-data; boundary=b", body),
                  400, part);
  };
  const std::string end = "--b--";
  refuse(end, "images: got a form without a file");
  refuse(Part("name=image", "a.png") + end, "-F image=@FILE");
  refuse(Part("name=image; filename=a", "GIF89a") + end,
         "\"reason\":\"IMAGE_FORMAT_UNSUPPORTED\"");
  const std::string picture =
      Part("name=image; filename=a", PictureRequest().body);
  refuse(picture + Part("name=topk", "1") + end, "\"field\":\"topk\"");
  // The longest accepted field has 1024 bytes.
  refuse(picture + Part("name=top_k", std::string(1024, '1')) + end,
         "expected a whole number");
  refuse(picture + Part("name=top_k", std::string(1025, '1')) + end,
         "expected at most 1024");
  const std::string shown(64, 'x');
  refuse(picture + Part("name=" + shown + "y", std::string(1025, '1')) + end,
         "\"field\":\"" + shown + "\"");
  refuse(picture + Part("name=image", "1") + end, "\"field\":\"image\"");
  refuse(picture, "\"reason\":\"MALFORMED_MESSAGE\"");
  std::string many;
  for (int i = 0; i < 70; ++i) many += picture;
  refuse(many + end, "\"reason\":\"TOO_MANY_IMAGES\"");
}

TEST_F(VisionRoutesTest, AnUnsetSideOfACropIsThePictures) {
  http::HttpRequest request = PictureRequest();
  request.query = {{"crop.x_max", "0.5"}};
  const std::string expected = Ask(request);
  request.query.emplace("crop.y_max", "1");
  EXPECT_EQ(Ask(request), expected);
  request.query = {{"crop.x_min", "0.5"}};
  Ask(request);
  request.query = {{"crop.x_max", "0"}};
  ExpectRefused(std::move(request), 400, "images[0].crop.x_min: got 0 to 0");
}

TEST_F(VisionRoutesTest, AnswersInProtobufIfAsked) {
  const v1::ClassifyResponse expected = Classify(PictureRequest());
  http::HttpRequest request = PictureRequest();
  request.headers.emplace("accept", "application/x-protobuf");
  v1::ClassifyResponse response;
  ASSERT_TRUE(response.ParseFromString(Ask(std::move(request))));
  EXPECT_EQ(type_, "application/x-protobuf");
  EXPECT_EQ(response.SerializeAsString(), expected.SerializeAsString());
  EXPECT_EQ(response.results(0).categories_size(), 5);
}

TEST_F(VisionRoutesTest, SeveralImagesAreAnsweredInOrder) {
  v1::ClassifyRequest message;
  for (int i = 0; i < 3; ++i) {
    message.add_images()->set_encoded(
        i == 1 ? "no picture"
               : server::EncodePng(server::Gradient(kSide + i, kSide)));
  }
  message.mutable_options()->set_allow_partial_results(true);
  for (const char* accept : {"application/json", "application/protobuf"}) {
    http::HttpRequest request =
        RequestOf("POST", "/v1/models/fake:classify", "application/protobuf",
                  message.SerializeAsString());
    request.headers.emplace("accept", accept);
    const std::string body = Ask(std::move(request));
    v1::ClassifyResponse response;
    if (type_ == "application/json") {
      response = FromJson<v1::ClassifyResponse>(body);
    } else {
      ASSERT_TRUE(response.ParseFromString(body));
    }
    ASSERT_EQ(response.results_size(), 3);
    EXPECT_EQ(response.results(0).categories_size(), 5);
    EXPECT_EQ(response.results(1).categories_size(), 0);
    EXPECT_EQ(response.results(1).error().code(), 3);
    EXPECT_EQ(response.results(1).error().details_size(), 2);
    EXPECT_EQ(response.results(2).categories_size(), 5);
  }
}

TEST_F(VisionRoutesTest, ValidationAloneIsAnsweredWithoutResults) {
  http::HttpRequest request = PictureRequest();
  request.query = {{"validate_only", "true"}};
  EXPECT_EQ(Ask(std::move(request)),
            "{\"results\":[{}],\"model\":\"models/fake/versions/3\"}");
}

TEST_F(VisionRoutesTest, FindsObjectsWithMasks) {
  http::HttpRequest request =
      RequestOf("POST", "/v1/models/masks/versions/1:detect", "image/png",
                server::EncodePng(server::Gradient(8, 8)));
  request.query = {{"mask_encoding", "COCO_RLE"}};
  const auto response = FromJson<v1::DetectResponse>(Ask(std::move(request)));
  ASSERT_EQ(response.results_size(), 1);
  ASSERT_GT(response.results(0).detections_size(), 0);
  EXPECT_EQ(response.results(0).detections(0).rle().width(), 8);
  EXPECT_EQ(response.results(0).image_height(), 8);
}

TEST_F(VisionRoutesTest, MapsClasses) {
  const auto response = FromJson<v1::SegmentResponse>(
      Ask(RequestOf("POST", "/v1/models/maps:segment", "image/png",
                    server::EncodePng(server::Gradient(8, 8)))));
  EXPECT_EQ(response.model(), "models/maps/versions/1");
  EXPECT_EQ(response.results_size(), 1);
}

TEST_F(VisionRoutesTest, ThePathNamesTheModel) {
  const auto ask = [this](const std::string& path, const std::string& model,
                          int status) {
    const std::string json =
        absl::StrCat("{\"model\":\"", model, "\",\"images\":[{\"encoded\":\"",
                     absl::Base64Escape(PictureRequest().body), "\"}]}");
    return Ask(RequestOf("POST", path, "application/json", json), status);
  };
  for (const char* model : {"", "fake", "models/fake"}) {
    ask("/v1/models/fake:classify", model, 200);
  }
  ask("/v1/models/fake/versions/3:classify", "models/fake/versions/3", 200);
  for (const char* model : {"masks", "models/fake/versions/3", "models"}) {
    EXPECT_TRUE(absl::StrContains(ask("/v1/models/fake:classify", model, 400),
                                  "which the path names"))
        << model;
  }
  http::HttpRequest in_query = PictureRequest();
  in_query.query = {{"model", "masks"}};
  ExpectRefused(std::move(in_query), 400, "which the path names");
}

TEST_F(VisionRoutesTest, RefusesAModelThatIsNotThere) {
  for (const char* path :
       {"/v1/models/none:classify", "/v1/models/fake/versions/9:classify"}) {
    http::HttpRequest request = PictureRequest();
    request.path = path;
    ExpectRefused(std::move(request), 404, "\"reason\":\"MODEL_NOT_FOUND\"");
  }
  http::HttpRequest other_task = PictureRequest();
  other_task.path = "/v1/models/fake:detect";
  ExpectRefused(std::move(other_task), 400, "\"reason\":\"TASK_MISMATCH\"");
  for (const char* path : {"/v1/models/:classify", "/v1/models/a/b:classify",
                           "/v1/models/../fake:classify"}) {
    http::HttpRequest request = PictureRequest();
    request.path = path;
    Ask(std::move(request), 400);
  }
}

TEST_F(VisionRoutesTest, RefusesWhatIsMalformed) {
  http::HttpRequest request = PictureRequest();
  request.query = {{"top_k", "-1"}};
  ExpectRefused(std::move(request), 400, "\"field\":\"params.top_k\"");
  request = PictureRequest();
  request.query = {{"top_k", "-1"}};
  ExpectRefused(std::move(request), 400,
                "\"message\":\"params.top_k: got -1, expected 0 to");
  request = PictureRequest();
  request.query = {{"topk", "1"}};
  ExpectRefused(std::move(request), 400, "\"field\":\"topk\"");
  request = PictureRequest();
  request.headers.emplace("x-request-timeout", "soon");
  ExpectRefused(std::move(request), 400, "\"field\":\"x-request-timeout\"");
  request = PictureRequest();
  request.body = "";
  ExpectRefused(std::move(request), 400, "\"field\":\"images[0]");
  request = PictureRequest();
  request.body.resize(request.body.size() / 2);
  ExpectRefused(std::move(request), 400, "\"reason\":\"IMAGE_DECODE_FAILED\"");
  const std::string path = "/v1/models/fake:classify";
  ExpectRefused(RequestOf("POST", path, "application/json", "{"), 400,
                "\"reason\":\"MALFORMED_MESSAGE\"");
  ExpectRefused(RequestOf("POST", path, "application/json", "{}"), 400,
                "images");
  ExpectRefused(RequestOf("POST", path, "application/x-protobuf", "\xff"), 400,
                "\"reason\":\"MALFORMED_MESSAGE\"");
  ExpectRefused(
      RequestOf("POST", path, "application/x-www-form-urlencoded", "x"), 400,
      "\"reason\":\"IMAGE_FORMAT_UNSUPPORTED\"");
  request = RequestOf("POST", path, "application/json", "{}");
  request.query = {{"top_k", "1"}};
  ExpectRefused(request, 400, "\"field\":\"top_k\"");
  const std::string shown(64, 'x');
  request.query = {{shown + "y", "1"}};
  ExpectRefused(std::move(request), 400, "\"field\":\"" + shown + "\"");
}

TEST_F(VisionRoutesTest, OtherMethodsAndVerbsAreRefused) {
  Ask(RequestOf("GET", "/v1/models/fake:classify"), 405);
  EXPECT_EQ(allow_, "POST, PUT, OPTIONS");
  Ask(RequestOf("OPTIONS", "/v1/models/fake:classify"), 204);
  EXPECT_EQ(allow_, "POST, PUT, OPTIONS");
  Ask(RequestOf("DELETE", "/v1/models/fake"), 405);
  EXPECT_EQ(allow_, "GET, HEAD, OPTIONS");
  Ask(RequestOf("POST", "/v1/models"), 405);
  Ask(RequestOf("POST", "/v1/models/fake:train"), 404);
  Ask(RequestOf("POST", "/v1/models/fake:"), 404);
}

TEST_F(VisionRoutesTest, DescribesModels) {
  const auto page =
      FromJson<v1::ListModelsResponse>(Ask(RequestOf("GET", "/v1/models")));
  ASSERT_EQ(page.models_size(), 3);
  EXPECT_EQ(page.models(0).name(), "models/fake/versions/3");
  EXPECT_EQ(page.models(0).state(), v1::Model::READY);
  EXPECT_EQ(page.models(0).classes_size(), 0);
  const auto model =
      FromJson<v1::Model>(Ask(RequestOf("GET", "/v1/models/fake")));
  EXPECT_EQ(model.classes_size(), server::FakeModel::kClasses);
  EXPECT_EQ(Requests("ListModels", ""), 1);
  EXPECT_EQ(Requests("GetModel", "fake"), 1);
  EXPECT_EQ(
      FromJson<v1::Model>(Ask(RequestOf("HEAD", "/v1/models/masks/versions/1")))
          .task(),
      v1::Model::DETECTION);
  ExpectRefused(RequestOf("GET", "/v1/models/none"), 404, "MODEL_NOT_FOUND");
  Ask(RequestOf("GET", "/v1/models/"), 400);
  http::HttpRequest paged = RequestOf("GET", "/v1/models");
  paged.query = {{"page_size", "1"}};
  EXPECT_EQ(FromJson<v1::ListModelsResponse>(Ask(paged)).next_page_token(),
            "models/fake/versions/3");
  paged.query = {{"page_size", "1"}, {"page_token", "models/fake/versions/3"}};
  EXPECT_EQ(FromJson<v1::ListModelsResponse>(Ask(paged)).models(0).name(),
            "models/maps/versions/1");
  paged.query = {{"page_size", "-1"}};
  ExpectRefused(paged, 400, "page_size");
  paged.query = {{"pages", "1"}};
  ExpectRefused(paged, 400, "pages");
}

}  // namespace
}  // namespace sfmamba::rest
