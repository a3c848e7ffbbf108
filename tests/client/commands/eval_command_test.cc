// Tests `sfmamba eval` with a server in this process, with each layout of a
// dataset and with faulty datasets.
#include "client/commands/eval_command.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/inputs.h"
#include "client/picture/picture_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/commands_testing.h"
#include "tests/client/fake_vision_server.h"
#include "tests/server/picture.h"

namespace sfmamba::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Answers with one cup, which has no mask.
grpc::Status FindCup(const v1::DetectRequest&, v1::DetectResponse* response) {
  v1::DetectResult* result = response->add_results();
  result->set_image_width(20);
  result->set_image_height(30);
  v1::Detection* detection = result->add_detections();
  detection->set_label("cup");
  detection->set_score(0.5);
  detection->mutable_box()->set_x_min(1);
  detection->mutable_box()->set_y_min(2);
  detection->mutable_box()->set_x_max(11);
  detection->mutable_box()->set_y_max(22);
  return grpc::Status::OK;
}

// The annotation of the cup that FindCup() finds.
constexpr char kOneCup[] =
    R"({"images": [{"id": 1, "file_name": "a.png", "width": 20, "height": 30}],)"
    R"( "annotations": [{"id": 1, "image_id": 1, "category_id": 7,)"
    R"( "bbox": [1, 2, 10, 20]}], "categories": [{"id": 7, "name": "cup"}]})";

// Answers with a map of 4 x 2 pixels. The first row has class 0, the second
// class 3.
grpc::Status SegmentHalves(const v1::SegmentRequest&,
                           v1::SegmentResponse* response) {
  v1::SegmentResult* result = response->add_results();
  result->set_width(4);
  result->set_height(2);
  result->set_png_index(server::EncodePng(
      4, 2, {0, 8}, std::string(4, '\0') + std::string(4, '\3')));
  return grpc::Status::OK;
}

class EvalCommandTest : public testing::Test {
 protected:
  EvalCommandTest()
      : server_(AnswerCup, FindCup, SegmentHalves),
        folder_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    v1::Model classifier = FakeModel("models/c/versions/1");
    v1::Model detector = FakeModel("models/d/versions/1");
    detector.set_task(v1::Model::DETECTION);
    v1::Model segmenter = FakeModel("models/s/versions/1");
    segmenter.set_task(v1::Model::SEGMENTATION);
    server_.SetModels({classifier, detector, segmenter});
  }

  void Add(const std::string& file, const std::string& bytes) {
    const std::filesystem::path path = absl::StrCat(folder_, "/", file);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }

  void AddPicture(const std::string& file) {
    Add(file, server::EncodePng(server::Gradient(20, 30)));
  }

  Outcome Eval(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {absl::StrCat("--server=", server_.address()),
                               absl::StrCat("--dataset=", folder_)});
    return Invoke(RunEval, more);
  }

  FakeVisionServer server_;
  const std::string folder_;
};

TEST_F(EvalCommandTest, AFolderForEachClassGivesTop1AndTop5) {
  AddPicture("cup/1.png");
  AddPicture("cup/2.JPG");
  AddPicture("chair/1.png");
  Add("chair/notes.txt", "no picture");
  const Outcome outcome = Eval({"--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              StartsWith(R"({"images": 3, "failed": 0, "top1": 0.666667, )"
                         R"("top5": 0.666667, "server_latency_ms": {"p50": )"));
}

TEST_F(EvalCommandTest, FiguresByClassFollow) {
  AddPicture("cup/1.png");
  AddPicture("cup/2.png");
  AddPicture("chair/1.png");
  EXPECT_THAT(
      Eval({"--json"}).out,
      HasSubstr(R"("classes": [{"label": "cup", "support": 2, "predicted": 3, )"
                R"("true_positives": 2, "recall": 1, "precision": 0.666667, )"
                R"("iou": 0.666667}, {"label": "chair", "support": 1, )"
                R"("predicted": 0, "true_positives": 0, "recall": 0, )"
                R"("precision": null, "iou": 0}]})"));
  const std::string table = Eval().out;
  EXPECT_THAT(table, HasSubstr("cup          2          3  1.0000     0.6667"));
  EXPECT_THAT(table, HasSubstr("chair        1          0  0.0000          -"));
}

TEST_F(EvalCommandTest, TheConfusionMatrixIsDrawn) {
  AddPicture("cup/1.png");
  const std::string path = absl::StrCat(folder_, "/confusion.png");
  const Outcome outcome = Eval({"--confusion=" + path});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const absl::StatusOr<std::string> png = ReadFile(path);
  ASSERT_TRUE(png.ok()) << png.status();
  const absl::StatusOr<Picture> picture = ReadPicture(*png);
  ASSERT_TRUE(picture.ok()) << picture.status();
  EXPECT_GT(picture->width, 28);
  const Outcome nowhere = Eval({"--confusion=/nonexistent/x.png"});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_EQ(nowhere.out, "") << "no picture was sent in vain";
  EXPECT_THAT(nowhere.err,
              HasSubstr("cannot write '/nonexistent/x.png': No such file"));
}

TEST_F(EvalCommandTest, PicturesCountByContentAndHiddenFilesDoNot) {
  AddPicture("cup/1.png");
  AddPicture("cup/2.jfif");
  AddPicture("cup/3");
  AddPicture("cup/._1.png");
  AddPicture(".cache/1.png");
  Add("cup/4.gif", "GIF89a");
  const Outcome outcome = Eval({"--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith(R"({"images": 3, "failed": 0, )"));
}

TEST_F(EvalCommandTest, TheTableSaysTheSame) {
  AddPicture("cup/1.png");
  const Outcome outcome = Eval();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("top1"));
  EXPECT_THAT(outcome.out, HasSubstr("server latency, p99"));
}

TEST_F(EvalCommandTest, MapsGiveMeanIou) {
  AddPicture("images/a.png");
  // SegmentHalves() answers. The first row of its answer is right. In the
  // second row, two pixels are right. The map says that the other two are
  // ignored.
  Add("maps/a.png",
      server::EncodePng(4, 2, {0, 8},
                        std::string(4, '\0') + std::string(2, '\3') +
                            std::string(2, '\xff')));
  const Outcome outcome = Eval({"--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(R"("miou": 1, "pixel_accuracy": 1,)"));
  EXPECT_THAT(outcome.out,
              HasSubstr(R"({"label": "cup", "support": 4, "predicted": 4, )"));
  // The output shows the number of a class that has no name in the model.
  EXPECT_THAT(outcome.out, HasSubstr(R"({"label": "3", "support": 2, )"));
}

TEST_F(EvalCommandTest, AMapOfAnotherSizeFailsItsPicture) {
  AddPicture("images/a.png");
  Add("maps/a.png", server::EncodePng(2, 2, {0, 8}, std::string(4, '\0')));
  const Outcome outcome = Eval({"--json"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr(R"("images": 0, "failed": 1)"));
  EXPECT_THAT(outcome.err, HasSubstr("the map is 2x2, the answer 4x2"));
}

TEST_F(EvalCommandTest, CocoGivesResultsInCocosFormat) {
  AddPicture("images/a.png");
  Add("annotations.json",
      R"({"images": [{"id": 42, "file_name": "a.png"}], "annotations": [],)"
      R"( "categories": [{"id": 7, "name": "cup"}]})");
  const std::string results = absl::StrCat(folder_, "/results.json");
  const Outcome outcome = Eval({"--json", "--predictions=" + results});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(R"("objects": 0, "detections": 1, )"
                                     R"("box_ap50": null, "box_ap": null)"));
  EXPECT_THAT(Eval({"--predictions=" + results, "--confusion=x.png"}).err,
              HasSubstr("--confusion is not for COCO datasets"));
  EXPECT_EQ(ReadFile(results).value_or(""),
            R"([{"image_id": 42, "category_id": 7, "score": 0.5, )"
            R"("bbox": [1, 2, 10, 20]}])"
            "\n");
}

TEST_F(EvalCommandTest, CocoGivesAveragePrecisionByClass) {
  AddPicture("images/a.png");
  Add("annotations.json", kOneCup);
  const Outcome outcome = Eval({"--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(R"("objects": 1, "detections": 1, )"
                                     R"("box_ap50": 1, "box_ap": 1,)"));
  EXPECT_THAT(outcome.out,
              HasSubstr(R"("classes": [{"label": "cup", "objects": 1, )"
                        R"("box_ap50": 1, "box_ap": 1}])"));
  EXPECT_THAT(Eval().out, HasSubstr("box AP50"));
}

TEST_F(EvalCommandTest, TheFileAndThePicturesCanBeNamed) {
  AddPicture("pictures/a.png");
  Add("labels.json", kOneCup);
  const std::string server = absl::StrCat("--server=", server_.address());
  const std::string annotations =
      absl::StrCat("--annotations=", folder_, "/labels.json");
  const std::string images = absl::StrCat("--images=", folder_, "/pictures/");
  const Outcome outcome =
      Invoke(RunEval, {server, "--json", annotations, images});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(R"("box_ap": 1,)"));
  EXPECT_THAT(Invoke(RunEval, {server, annotations}).err,
              HasSubstr("--annotations and --images need each other"));
  EXPECT_EQ(Eval({annotations, images}).exit_code, 2);
}

TEST_F(EvalCommandTest, ExportsOfLabellingToolsAreRead) {
  for (const auto& [annotations, picture] :
       std::vector<std::pair<std::string, std::string>>{
           {"_annotations.coco.json", "a.png"},
           {"valid/_annotations.coco.json", "valid/a.png"},
           {"annotations/instances_default.json", "images/a.png"},
           {"annotations/instances_default.json", "images/default/a.png"},
           {"annotations/instances_val2017.json", "val2017/a.png"},
           {"result.json", "images/a.png"}}) {
    std::filesystem::remove_all(folder_);
    AddPicture(picture);
    Add(annotations, kOneCup);
    const Outcome outcome = Eval({"--json"});
    EXPECT_EQ(outcome.exit_code, 0) << annotations << ": " << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(R"("box_ap": 1,)"));
  }
}

TEST_F(EvalCommandTest, OnlyClassesWithObjectsNeedTheModel) {
  AddPicture("images/a.png");
  const auto annotations = [](const std::string& category) {
    return absl::StrCat(
        R"({"images": [{"id": 1, "file_name": "a.png"}],)"
        R"( "annotations": [{"id": 1, "image_id": 1, "bbox": [1, 2, 3, 4],)"
        R"( "category_id": )",
        category,
        R"(}], "categories": [{"id": 0, "name": "things"},)"
        R"( {"id": 7, "name": "cup", "supercategory": "things"},)"
        R"( {"id": 8, "name": "zebra"}, {"id": 9, "name": "yak"}]})");
  };
  Add("annotations.json", annotations("7"));
  const Outcome outcome = Eval();
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("left out category 'things'"));
  Add("annotations.json", annotations("8"));
  EXPECT_THAT(Eval().err, HasSubstr("has no class 'zebra', which"));
}

TEST_F(EvalCommandTest, APictureOfAnotherSizeThanTheFileSaysFails) {
  AddPicture("images/a.png");
  std::string annotations = kOneCup;
  annotations.replace(annotations.find("\"width\": 20"), 11, "\"width\": 99");
  Add("annotations.json", annotations);
  const Outcome outcome = Eval({"--json"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("a.png: the dataset says 99x30 pixels, "
                                     "the answer is for 20x30"));
}

TEST_F(EvalCommandTest, OfTwoLayoutsTheModelDecides) {
  AddPicture("images/a.png");
  Add("maps/a.png", server::EncodePng(4, 2, {0, 8}, std::string(8, '\0')));
  Add("annotations.json",
      R"({"images": [{"id": 1, "file_name": "a.png"}], "categories": [],)"
      R"( "annotations": []})");
  const Outcome undecided = Eval();
  EXPECT_EQ(undecided.exit_code, 2);
  EXPECT_THAT(undecided.err,
              HasSubstr("both annotations.json and maps/; name a model"));
  const Outcome segmented = Eval({"--json", "--model=models/s/versions/1"});
  EXPECT_EQ(segmented.exit_code, 0) << segmented.err;
  EXPECT_THAT(segmented.out, HasSubstr(R"("miou": 0.25, )"));
  const Outcome detected = Eval({"--json", "--model=models/d/versions/1"});
  EXPECT_EQ(detected.exit_code, 0) << detected.err;
  EXPECT_THAT(detected.out, HasSubstr(R"("box_ap": null)"));
  EXPECT_THAT(Eval({"--model=models/s/versions/1", "--predictions=x.json"}).err,
              HasSubstr("--predictions is for COCO datasets"));
}

TEST_F(EvalCommandTest, AModelOfAnotherTaskOrNoneIsRefused) {
  AddPicture("cup/1.png");
  EXPECT_THAT(Eval({"--model=models/d/versions/1"}).err,
              HasSubstr("the dataset is for CLASSIFICATION, "
                        "models/d/versions/1 for DETECTION"));
  server_.SetModels({FakeModel("a"), FakeModel("b")});
  const Outcome several = Eval();
  EXPECT_EQ(several.exit_code, 1);
  EXPECT_THAT(several.err, HasSubstr("the server has 2 models"));
}

TEST_F(EvalCommandTest, OfSeveralModelsTheDefaultIsAsked) {
  AddPicture("zebra/1.png");
  std::vector<v1::Model> models = {FakeModel("models/a/versions/1"),
                                   FakeModel("models/b/versions/1")};
  models[1].set_default_for_task(true);
  server_.SetModels(models);
  EXPECT_THAT(Eval().err,
              HasSubstr("models/b/versions/1 has no class 'zebra'"));
  models[0].set_default_for_task(true);
  server_.SetModels(models);
  EXPECT_THAT(Eval().err, HasSubstr("the server has 2 models"));
}

TEST_F(EvalCommandTest, ClassesThatTheModelLacksAreNamed) {
  AddPicture("cup/1.png");
  AddPicture("zebra/1.png");
  const Outcome outcome = Eval();
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("models/c/versions/1 has no class 'zebra'"));
}

TEST_F(EvalCommandTest, BadDatasetsAndFlagsAreNamed) {
  EXPECT_THAT(Eval().err, HasSubstr("no such folder"));
  std::filesystem::create_directories(folder_);
  EXPECT_THAT(Eval().err, HasSubstr("no pictures; expected"));
  AddPicture("images/a.png");
  std::filesystem::create_directories(folder_ + "/maps");
  EXPECT_THAT(Eval().err, HasSubstr("a.png: no map"));
  std::filesystem::remove_all(folder_ + "/maps");
  Add("annotations.json", "[1");
  EXPECT_THAT(Eval().err,
              HasSubstr("annotations.json: not JSON: parse error at line 1"));
  Add("annotations.json", "{}");
  EXPECT_THAT(Eval().err, HasSubstr("annotations.json: has no \"images\""));
  EXPECT_EQ(Invoke(RunEval, {}).exit_code, 2);
}

// Starts a server with two models for each task, for example "models/c" and
// "models/c2" for classification. Compare() evaluates the second model and
// compares its answers with the first model's answers.
class EvalAgainstTest : public EvalCommandTest {
 protected:
  EvalAgainstTest() {
    std::vector<v1::Model> models;
    for (const auto& [id, task] :
         std::vector<std::pair<std::string, v1::Model::Task>>{
             {"c", v1::Model::CLASSIFICATION},
             {"d", v1::Model::DETECTION},
             {"s", v1::Model::SEGMENTATION}}) {
      for (const char* copy : {"", "2"}) {
        models.push_back(
            FakeModel(absl::StrCat("models/", id, copy, "/versions/1")));
        models.back().set_task(task);
      }
    }
    both_.SetModels(models);
  }

  Outcome Compare(const std::string& id, std::vector<std::string> more = {}) {
    more.insert(more.begin(),
                {absl::StrCat("--server=", both_.address()),
                 absl::StrCat("--dataset=", folder_),
                 absl::StrCat("--model=models/", id, "2"),
                 absl::StrCat("--against=models/", id), "--json"});
    return Invoke(RunEval, more);
  }

  static bool IsSecond(const std::string& model) {
    return model[std::string("models/c").size()] == '2';
  }

  // The second model classifies wide pictures as chairs, with logits 1 and 2
  // for cup and chair. All other answers are cups, with logits 3 and 1.
  static grpc::Status Classify(const v1::ClassifyRequest& request,
                               v1::ClassifyResponse* response) {
    EXPECT_EQ(request.params().score_type(), v1::ClassifyParams::LOGIT);
    EXPECT_EQ(request.params().top_k(), 2);
    const auto picture = ReadPicture(request.images(0).encoded());
    const bool chair = IsSecond(request.model()) && picture->width > 20;
    v1::ClassifyResult* result = response->add_results();
    for (const int id : {chair ? 1 : 0, chair ? 0 : 1}) {
      v1::Category* category = result->add_categories();
      category->set_class_id(id);
      category->set_label(id == 0 ? "cup" : "chair");
      category->set_score(chair ? 1 + id : 3 - 2 * id);
    }
    return grpc::Status::OK;
  }

  // The second model finds the cup, and also a chair with a higher score.
  static grpc::Status Detect(const v1::DetectRequest& request,
                             v1::DetectResponse* response) {
    const grpc::Status status = FindCup(request, response);
    v1::DetectResult* result = response->mutable_results(0);
    result->mutable_detections(0)->set_score(0.75);
    if (IsSecond(request.model())) {
      *result->add_detections() = result->detections(0);
      result->mutable_detections(1)->set_label("chair");
    }
    return status;
  }

  // The second model returns a different class for a quarter of the pixels.
  static grpc::Status Segment(const v1::SegmentRequest& request,
                              v1::SegmentResponse* response) {
    if (!IsSecond(request.model())) return SegmentHalves(request, response);
    v1::SegmentResult* result = response->add_results();
    result->set_width(4);
    result->set_height(2);
    result->set_png_index(server::EncodePng(
        4, 2, {0, 8},
        std::string(2, '\1') + std::string(2, '\0') + std::string(4, '\3')));
    return grpc::Status::OK;
  }

  FakeVisionServer both_{Classify, Detect, Segment};
};

TEST_F(EvalAgainstTest, ClassifiersAreComparedByLogitsAndTop1) {
  AddPicture("cup/1.png");
  AddPicture("cup/2.png");
  AddPicture("cup/3.png");
  Add("chair/1.png", server::EncodePng(server::Gradient(30, 20)));
  const Outcome outcome = Compare("c");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  // Only the chair's logits differ, one by 2 and one by 1. The other six logits
  // are equal. The first model returns the logits 3 and 1 for each picture.
  EXPECT_THAT(outcome.out,
              StartsWith(R"({"images": 4, "failed": 0, )"
                         R"("same_first_class": 0.75, "logit_rms": 0.790569, )"
                         R"("top1_difference": 0.25, "top1": 1, "top5": 1, )"
                         R"("against_top1": 0.75, "against_top5": 1, )"));
}

TEST_F(EvalAgainstTest, PicturesAloneNeedNoLabels) {
  AddPicture("1.png");
  Add("2.png", server::EncodePng(server::Gradient(30, 20)));
  const Outcome outcome = Compare("c");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              StartsWith(R"({"images": 2, "failed": 0, )"
                         R"("same_first_class": 0.5, "logit_rms": 1.11803, )"
                         R"("server_latency_ms": )"));
  EXPECT_THAT(Compare("s").out, HasSubstr(R"("equal_pixels": 0.75, "server)"));
  EXPECT_THAT(Compare("d").out,
              HasSubstr(R"("matched_boxes": 0.666667, "server)"));
  EXPECT_THAT(Compare("c", {"--confusion=x.png"}).err,
              HasSubstr("pictures without labels"));
  EXPECT_THAT(Eval({"--model=models/c/versions/1"}).err,
              HasSubstr("the pictures have no labels"));
}

TEST_F(EvalAgainstTest, DenseModelsHaveTheirFiguresOfBoth) {
  AddPicture("images/a.png");
  Add("maps/a.png",
      server::EncodePng(4, 2, {0, 8},
                        std::string(4, '\0') + std::string(4, '\3')));
  Add("annotations.json", kOneCup);
  EXPECT_THAT(
      Compare("s").out,
      StartsWith(R"({"images": 1, "failed": 0, "equal_pixels": 0.75, )"
                 R"("miou": 0.5, "pixel_accuracy": 0.75, )"
                 R"("against_miou": 1, "against_pixel_accuracy": 1, )"));
  const std::string results = absl::StrCat(folder_, "/results.json");
  const Outcome outcome = Compare("d", {"--predictions=" + results});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(R"("matched_boxes": 0.666667, )"));
  EXPECT_THAT(outcome.out, HasSubstr(R"("against_box_ap": 1,)"));
  EXPECT_THAT(ReadFile(results).value_or(""), StartsWith(R"([{"image_id": 1)"))
      << "those of --model";
}

TEST_F(EvalAgainstTest, APictureThatOneModelDoesNotAnswerFails) {
  AddPicture("cup/1.png");
  FakeVisionServer broken(
      [](const v1::ClassifyRequest& request, v1::ClassifyResponse* response) {
        if (IsSecond(request.model())) return Classify(request, response);
        // This answer has only one of two categories.
        return AnswerCup(request, response);
      });
  broken.SetModels(
      {FakeModel("models/c/versions/1"), FakeModel("models/c2/versions/1")});
  const Outcome outcome =
      Compare("c", {absl::StrCat("--server=", broken.address())});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, StartsWith(R"({"images": 0, "failed": 1, )"
                                      R"("same_first_class": null, )"));
  EXPECT_THAT(outcome.err, HasSubstr("got logits of 1 classes, expected 2"));
}

TEST_F(EvalAgainstTest, ModelsThatCannotBeComparedAreNamed) {
  AddPicture("1.png");
  EXPECT_THAT(
      Compare("c", {"--against=models/d"}).err,
      HasSubstr("models/c2/versions/1 and models/d/versions/1 differ in "
                "task or classes"));
  EXPECT_THAT(Compare("c", {"--model="}).err,
              HasSubstr("--against needs --model"));
  EXPECT_THAT(Compare("c", {"--against=models/x"}).err,
              HasSubstr("no such model"));
}

}  // namespace
}  // namespace sfmamba::client
