// Tests `sfmamba detect` and `sfmamba segment` with a server in this process:
// the requests, the output, the drawings and the exit code.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/commands/classify_command.h"
#include "client/commands/detect_command.h"
#include "client/commands/inputs.h"
#include "client/commands/segment_command.h"
#include "client/picture/picture_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/commands_testing.h"
#include "tests/client/fake_vision_server.h"
#include "tests/server/picture.h"

namespace sfmamba::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

// The width and height of all pictures in this file.
constexpr int kWidth = 64, kHeight = 48;

// Answers with a cup and a chair. The cup has a mask if masks are requested.
// The model "empty" finds nothing.
grpc::Status FindCup(const v1::DetectRequest& request,
                     v1::DetectResponse* response) {
  response->set_model("models/d/versions/1");
  response->mutable_timing()->set_device("cpu");
  v1::DetectResult* result = response->add_results();
  result->set_image_width(kWidth);
  result->set_image_height(kHeight);
  if (request.model() == "empty") return grpc::Status::OK;
  for (const char* label : {"cup", "chair"}) {
    v1::Detection* detection = result->add_detections();
    detection->set_class_id(result->detections_size() + 40);
    detection->set_label(label);
    detection->set_score(0.875);
    detection->mutable_box()->set_x_min(8);
    detection->mutable_box()->set_y_min(16.25);
    detection->mutable_box()->set_x_max(40.5);
    detection->mutable_box()->set_y_max(48);
  }
  if (request.params().mask_encoding() == v1::DetectParams::COCO_RLE) {
    v1::CocoRle* rle = result->mutable_detections(0)->mutable_rle();
    rle->set_width(kWidth);
    rle->set_height(kHeight);
    // The counts of COCO's compressed string are 1000 unset, 72 set and 2000
    // unset pixels.
    rle->set_counts(request.model() == "malformed" ? "1" : "Xo0X2`n1");
  }
  return grpc::Status::OK;
}

// Answers with a map of which three quarters are floor and the rest is wall.
grpc::Status SegmentRoom(const v1::SegmentRequest& request,
                         v1::SegmentResponse* response) {
  response->set_model("models/s/versions/1");
  v1::SegmentResult* result = response->add_results();
  result->set_width(kWidth);
  result->set_height(kHeight);
  const int pixels = kWidth * kHeight;
  const std::string map =
      std::string(pixels / 4, '\0') + std::string(pixels - pixels / 4, '\3');
  result->set_png_index(request.model() == "malformed"
                            ? "no map"
                            : server::EncodePng(kWidth, kHeight, {0, 8}, map));
  if (!request.params().include_class_areas()) return grpc::Status::OK;
  for (const auto& [class_id, label, fraction] :
       {std::make_tuple(0, "wall", 0.25), std::make_tuple(3, "floor", 0.75)}) {
    v1::ClassArea* area = result->add_areas();
    area->set_class_id(class_id);
    area->set_label(label);
    area->set_pixel_count(pixels * fraction);
    area->set_fraction(fraction);
  }
  return grpc::Status::OK;
}

// Answers with a cup. Its heat map is high in the right half.
grpc::Status SeeCup(const v1::ClassifyRequest& request,
                    v1::ClassifyResponse* response) {
  v1::ClassifyResult* result = response->add_results();
  v1::Category* category = result->add_categories();
  category->set_class_id(41);
  category->set_label("cup");
  category->set_score(0.75);
  if (request.params().heat_map().encoding() != v1::HeatMapParams::PNG) {
    return grpc::Status::OK;
  }
  std::string map;
  for (int y = 0; y < kHeight; ++y) {
    map += std::string(kWidth / 2, '\0') + std::string(kWidth / 2, '\xFF');
  }
  result->mutable_heat_map()->set_class_id(41);
  result->mutable_heat_map()->set_png(
      server::EncodePng(kWidth, kHeight, {0, 8}, map));
  return grpc::Status::OK;
}

class PictureCommandsTest : public testing::Test {
 protected:
  PictureCommandsTest()
      : server_(
            SeeCup,
            [this](const v1::DetectRequest& request,
                   v1::DetectResponse* response) {
              {
                absl::MutexLock lock(&mu_);
                detect_request_ = request;
              }
              return FindCup(request, response);
            },
            [this](const v1::SegmentRequest& request,
                   v1::SegmentResponse* response) {
              {
                absl::MutexLock lock(&mu_);
                segment_request_ = request;
              }
              return SegmentRoom(request, response);
            }),
        server_flag_(absl::StrCat("--server=", server_.address())),
        output_dir_(absl::StrCat(testing::TempDir(), "/out/pictures")),
        output_flag_(absl::StrCat("--output_dir=", output_dir_)),
        picture_(WriteFile(
            "room.png", server::EncodePng(server::Gradient(kWidth, kHeight)))) {
    std::filesystem::remove_all(output_dir_);
  }

  // Returns the drawing with this file name.
  Picture Drawn(const std::string& name) const {
    const auto bytes = ReadFile(absl::StrCat(output_dir_, "/", name));
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    const auto picture = ReadPicture(bytes.value_or(""));
    EXPECT_TRUE(picture.ok()) << picture.status();
    return picture.value_or(Picture());
  }

  // Returns the last Detect request.
  v1::DetectRequest LastDetect() {
    absl::MutexLock lock(&mu_);
    return detect_request_;
  }
  v1::SegmentRequest LastSegment() {
    absl::MutexLock lock(&mu_);
    return segment_request_;
  }

 private:
  // A mutex is needed because the server answers several calls at a time.
  absl::Mutex mu_;
  v1::DetectRequest detect_request_ ABSL_GUARDED_BY(mu_);
  v1::SegmentRequest segment_request_ ABSL_GUARDED_BY(mu_);

 protected:
  FakeVisionServer server_;
  const std::string server_flag_;
  const std::string output_dir_;
  const std::string output_flag_;
  const std::string picture_;
};

TEST_F(PictureCommandsTest, ClassifyDrawsTheHeatMap) {
  const Outcome outcome =
      Invoke(RunClassify, {server_flag_, picture_, "--heat_map", output_flag_});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  const Picture drawn = Drawn("room.classify.png");
  const Picture picture = server::Gradient(kWidth, kHeight);
  ASSERT_EQ(drawn.data.size(), picture.data.size());
  const size_t below = size_t{3} * kWidth * (kHeight - 1);
  EXPECT_EQ(drawn.data[below], picture.data[below]);
  EXPECT_NE(drawn.data[below + 3 * kWidth - 3],
            picture.data[below + 3 * kWidth - 3]);
  for (const std::string& alone : {std::string("--heat_map"), output_flag_}) {
    const Outcome refused =
        Invoke(RunClassify, {server_flag_, picture_, alone});
    EXPECT_EQ(refused.exit_code, kExitUsage);
    EXPECT_THAT(refused.err, HasSubstr("--heat_map and --output_dir"));
  }
}

TEST_F(PictureCommandsTest, DetectPrintsATable) {
  const Outcome outcome = Invoke(RunDetect, {server_flag_, picture_});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out,
              MatchesRegex("file .*label   score  x_min  y_min  x_max  y_max\n"
                           ".*room.png  cup +0.8750    8.0   16.2   40.5   "
                           "48.0\n +chair  0.8750 .*48.0\n"));
  EXPECT_FALSE(std::filesystem::exists(output_dir_));
}

TEST_F(PictureCommandsTest, DetectAsksAsItsFlagsSay) {
  Invoke(RunDetect, {server_flag_, picture_});
  EXPECT_EQ(LastDetect().model(), "");
  EXPECT_EQ(LastDetect().params().score_threshold(), 0.5f);
  EXPECT_FALSE(LastDetect().params().has_nms_iou_threshold());
  EXPECT_EQ(LastDetect().params().max_detections(), 0);
  EXPECT_THAT(LastDetect().params().class_filter(), IsEmpty());
  EXPECT_EQ(LastDetect().params().mask_encoding(), v1::DetectParams::COCO_RLE);
  EXPECT_FALSE(LastDetect().options().include_timing());

  const Outcome outcome = Invoke(
      RunDetect, {server_flag_, picture_, "--model=m", "--score_threshold=0",
                  "--nms_iou_threshold=0.5", "--max_detections=7",
                  "--classes=3,0", "--masks=false", "--timing"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\ntime in ms"));
  EXPECT_EQ(LastDetect().model(), "m");
  EXPECT_EQ(LastDetect().params().score_threshold(), 0);
  EXPECT_EQ(LastDetect().params().nms_iou_threshold(), 0.5);
  EXPECT_EQ(LastDetect().params().max_detections(), 7);
  EXPECT_THAT(LastDetect().params().class_filter(), ElementsAre(3, 0));
  EXPECT_EQ(LastDetect().params().mask_encoding(),
            v1::DetectParams::MASK_ENCODING_UNSPECIFIED);
  EXPECT_TRUE(LastDetect().options().include_timing());
}

TEST_F(PictureCommandsTest, DetectAsksForTiles) {
  Invoke(RunDetect, {server_flag_, picture_});
  EXPECT_FALSE(LastDetect().params().has_tiles());
  Invoke(RunDetect,
         {server_flag_, picture_, "--tiles=640x480", "--tile_overlap=0.3",
          "--tile_merge=greedy_nmm", "--tile_match=ios"});
  const v1::Tiles tiles = LastDetect().params().tiles();
  EXPECT_EQ(tiles.width(), 640);
  EXPECT_EQ(tiles.height(), 480);
  EXPECT_EQ(tiles.overlap(), 0.3f);
  EXPECT_EQ(tiles.merge(), v1::Tiles::GREEDY_NMM);
  EXPECT_EQ(tiles.match(), v1::Tiles::IOS);
  Invoke(RunDetect, {server_flag_, picture_, "--tiles=auto"});
  EXPECT_TRUE(LastDetect().params().has_tiles());
  EXPECT_EQ(LastDetect().params().tiles().width(), 0);
  EXPECT_FALSE(LastDetect().params().tiles().has_overlap());
  for (const std::string wrong : {"--tiles=640", "--tiles=ax4",
                                  "--tile_merge=nmw", "--tile_match=dice"}) {
    const Outcome outcome =
        Invoke(RunDetect, {server_flag_, picture_, "--tiles=auto", wrong});
    EXPECT_EQ(outcome.exit_code, kExitUsage) << wrong;
    EXPECT_THAT(outcome.err, HasSubstr("--tile")) << wrong;
  }
}

TEST_F(PictureCommandsTest, DetectDraws) {
  const Outcome outcome =
      Invoke(RunDetect, {server_flag_, picture_, output_flag_});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  const Picture drawn = Drawn("room.detect.png");
  EXPECT_EQ(drawn.width, kWidth);
  EXPECT_EQ(drawn.height, kHeight);
  EXPECT_NE(drawn.data, server::Gradient(kWidth, kHeight).data);
}

TEST_F(PictureCommandsTest, DetectSaysThatThereIsNothing) {
  const Outcome outcome = Invoke(
      RunDetect, {server_flag_, picture_, output_flag_, "--model=empty"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("room.png  (no object)\n"));
  EXPECT_EQ(Drawn("room.detect.png").data,
            server::Gradient(kWidth, kHeight).data);
}

TEST_F(PictureCommandsTest, DetectWritesJson) {
  const Outcome outcome =
      Invoke(RunDetect, {server_flag_, picture_, output_flag_, "--json"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_EQ(
      outcome.out,
      absl::StrCat(
          R"([{"file": ")", picture_,
          R"(", "model": "models/d/versions/1", "width": 64, "height": 48, )"
          R"("detections": [{"class_id": 41, "label": "cup", "score": 0.875, )"
          R"("box": {"x_min": 8, "y_min": 16.25, "x_max": 40.5, "y_max": 48}, )"
          R"("segmentation": {"size": [48, 64], "counts": "Xo0X2`n1"}}, )"
          R"({"class_id": 42, "label": "chair", "score": 0.875, )"
          R"("box": {"x_min": 8, "y_min": 16.25, "x_max": 40.5, "y_max": 48}}], )"
          R"("drawing": ")",
          output_dir_, "/room.detect.png\"}]\n"));
}

TEST_F(PictureCommandsTest, AMalformedMaskIsTheServersFault) {
  const Outcome outcome = Invoke(
      RunDetect, {server_flag_, picture_, output_flag_, "--model=malformed"});
  EXPECT_EQ(outcome.exit_code, kExitRpcError);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("DATA_LOSS: detection 0: RLE: "));
  EXPECT_FALSE(std::filesystem::exists(output_dir_ + "/room.detect.png"));
}

TEST_F(PictureCommandsTest, SegmentPrintsATable) {
  const Outcome outcome =
      Invoke(RunSegment, {server_flag_, picture_, "--classes=3,0", "--timing"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out,
              MatchesRegex("file .*class  pixels  percent\n"
                           ".*room.png  floor +2304 +75.00\n"
                           " +wall +768 +25.00\n\ntime in ms.*\n"));
  EXPECT_THAT(LastSegment().params().class_filter(), ElementsAre(3, 0));
  EXPECT_TRUE(LastSegment().options().include_timing());
}

TEST_F(PictureCommandsTest, SegmentAsksForAWindow) {
  EXPECT_EQ(Invoke(RunSegment, {server_flag_, picture_}).exit_code, kExitOk);
  EXPECT_FALSE(LastSegment().params().has_slide());
  EXPECT_EQ(Invoke(RunSegment, {server_flag_, picture_, "--slide=512x384",
                                "--stride=341x256"})
                .exit_code,
            kExitOk);
  const v1::SlidingWindow slide = LastSegment().params().slide();
  EXPECT_EQ(slide.width(), 512);
  EXPECT_EQ(slide.height(), 384);
  EXPECT_EQ(slide.stride_x(), 341);
  EXPECT_EQ(slide.stride_y(), 256);
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--slide=512"},
                                             {"--slide=0x5"},
                                             {"--slide=axb"},
                                             {"--slide=1x2x3"},
                                             {"--slide=9x9", "--stride=-1x1"},
                                             {"--stride=8x8"}}) {
    std::vector<std::string> arguments = {server_flag_, picture_};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    const Outcome outcome = Invoke(RunSegment, arguments);
    EXPECT_EQ(outcome.exit_code, kExitUsage) << wrong[0];
    EXPECT_THAT(outcome.err, HasSubstr("expected"));
  }
}

TEST_F(PictureCommandsTest, SegmentDrawsAndWritesJson) {
  const Outcome outcome =
      Invoke(RunSegment, {server_flag_, picture_, output_flag_, "--json"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr(R"("width": 64, "height": 48, "areas": [{"class_id": 0)"
                        R"(, "label": "wall", "pixel_count": 768, )"
                        R"("fraction": 0.25}, )"));
  EXPECT_THAT(outcome.out, HasSubstr(R"("drawing": ")"));
  EXPECT_GT(Drawn("room.segment.png").height, kHeight);  // A legend was added.
}

TEST_F(PictureCommandsTest, AMalformedMapIsTheServersFault) {
  const Outcome outcome = Invoke(
      RunSegment, {server_flag_, picture_, output_flag_, "--model=malformed"});
  EXPECT_EQ(outcome.exit_code, kExitRpcError);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("DATA_LOSS: map: this is text"));
}

TEST_F(PictureCommandsTest, AnAnswerAboutAnotherPictureIsTheServersFault) {
  const std::string other = WriteFile(
      "other.png", server::EncodePng(server::Gradient(kHeight, kWidth)));
  for (const Command command : {RunDetect, RunSegment}) {
    const Outcome outcome =
        Invoke(command, {server_flag_, other, output_flag_});
    EXPECT_EQ(outcome.exit_code, kExitRpcError);
    EXPECT_THAT(outcome.err, HasSubstr("the answer is about 64 x 48 pixels"));
    EXPECT_THAT(outcome.out, HasSubstr("other.png  ")) << "the table is there";
  }
}

TEST_F(PictureCommandsTest, WhatCannotBeDrawnIsTheCallersFault) {
  const std::string text = WriteFile("text.png", "a cup");
  Outcome outcome = Invoke(RunDetect, {server_flag_, text, output_flag_});
  EXPECT_EQ(outcome.exit_code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("text.png': this is text"));

  std::filesystem::create_directories(output_dir_ + "/room.detect.png");
  outcome = Invoke(RunDetect, {server_flag_, picture_, output_flag_});
  EXPECT_EQ(outcome.exit_code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("room.detect.png': Is a directory"));
}

TEST_F(PictureCommandsTest, WrongUsageIsRefusedBeforeAnythingIsSent) {
  const std::string file = WriteFile("a_file", "x");
  for (const Command command : {RunDetect, RunSegment}) {
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{
             {},
             {picture_, "--classes=1,cup"},
             {picture_, "--classes=99999999999"},
             // Both drawings would have the same name.
             {picture_, picture_, output_flag_},
             {picture_, absl::StrCat("--output_dir=", file)}}) {
      std::vector<std::string> all = {server_flag_};
      all.insert(all.end(), arguments.begin(), arguments.end());
      const Outcome outcome = Invoke(command, all);
      EXPECT_EQ(outcome.exit_code, kExitUsage);
      EXPECT_NE(outcome.err, "");
    }
  }
  EXPECT_EQ(Invoke(RunDetect, {picture_, "--score_threshold=high"}).exit_code,
            kExitUsage);
  EXPECT_EQ(server_.call_count(), 0);
}

TEST_F(PictureCommandsTest, ManyFilesKeepTheirOrder) {
  std::vector<std::string> arguments = {server_flag_, output_flag_};
  std::string pattern = "file.*\n";
  for (int i = 0; i < 20; ++i) {
    arguments.push_back(
        WriteFile(absl::StrCat("p", i, ".png"),
                  server::EncodePng(server::Gradient(kWidth, kHeight))));
    absl::StrAppend(&pattern, ".*/p", i, ".png .*\n +wall .*\n");
  }
  const Outcome outcome = Invoke(RunSegment, arguments);
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, MatchesRegex(pattern));
  for (int i = 0; i < 20; ++i) Drawn(absl::StrCat("p", i, ".segment.png"));
}

// The server's answer contains no result for the picture.
TEST(ResultCountTest, AnAnswerWithoutResultIsTheServersFault) {
  FakeVisionServer server(nullptr,
                          [](const v1::DetectRequest&, v1::DetectResponse*) {
                            return grpc::Status::OK;
                          });
  const Outcome outcome = Invoke(
      RunDetect,
      {absl::StrCat("--server=", server.address()), WriteFile("a.png", "x")});
  EXPECT_EQ(outcome.exit_code, kExitRpcError);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("DATA_LOSS: 0 results, expected 1"));
}

}  // namespace
}  // namespace sfmamba::client
