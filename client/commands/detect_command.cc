#include "client/commands/detect_command.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/commands/classify_command.h"
#include "client/commands/picture_flags.h"
#include "client/commands/predict_files.h"
#include "client/picture/draw.h"
#include "client/picture/masks.h"

namespace sfmamba::client {
namespace {

// Returns DATA_LOSS if a mask cannot be decoded.
absl::Status CheckMasks(const v1::DetectResult& result) {
  for (int i = 0; i < result.detections_size(); ++i) {
    const absl::Status status = DecodeMask(result.detections(i)).status();
    if (!status.ok()) {
      return absl::DataLossError(
          absl::StrCat("detection ", i, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

Rows ObjectRows(const v1::DetectResult& result) {
  Rows rows;
  for (const v1::Detection& detection : result.detections()) {
    std::vector<std::string> row = {detection.label(),
                                    absl::StrFormat("%.4f", detection.score())};
    const v1::BoundingBox& box = detection.box();
    for (const float side :
         {box.x_min(), box.y_min(), box.x_max(), box.y_max()}) {
      row.push_back(absl::StrFormat("%.1f", side));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// Returns ObjectRows() with additional columns for the classes of the crops.
Rows CropRows(const v1::DetectResult& result) {
  Rows rows = ObjectRows(result);
  for (int i = 0; i < result.detections_size(); ++i) {
    const v1::ClassifyResult& crop = result.detections(i).crop();
    const bool named = crop.categories_size() > 0;
    rows[i].push_back(named ? crop.categories(0).label() : "");
    rows[i].push_back(
        named ? absl::StrFormat("%.4f", crop.categories(0).score()) : "");
  }
  return rows;
}

void WriteDetection(const v1::Detection& detection, JsonWriter* json) {
  json->BeginObject();
  json->Key("class_id").Integer(detection.class_id());
  json->Key("label").String(detection.label());
  json->Key("score").Number(detection.score());
  const v1::BoundingBox& box = detection.box();
  json->Key("box").BeginObject();
  json->Key("x_min").Number(box.x_min()).Key("y_min").Number(box.y_min());
  json->Key("x_max").Number(box.x_max()).Key("y_max").Number(box.y_max());
  json->EndObject();
  if (detection.has_rle()) {  // In the format of COCO's tools.
    const v1::CocoRle& rle = detection.rle();
    json->Key("segmentation").BeginObject();
    json->Key("size").BeginArray();
    json->Integer(rle.height()).Integer(rle.width()).EndArray();
    json->Key("counts").String(rle.counts());
    json->EndObject();
  }
  if (detection.has_crop()) {
    json->Key("crop").BeginObject();
    WriteCategories(detection.crop(), json);
    json->EndObject();
  }
  json->EndObject();
}

void WriteDetections(const v1::DetectResult& result, JsonWriter* json) {
  json->Key("width").Integer(result.image_width());
  json->Key("height").Integer(result.image_height());
  json->Key("detections").BeginArray();
  for (const v1::Detection& detection : result.detections()) {
    WriteDetection(detection, json);
  }
  json->EndArray();
}

// The flags for dividing pictures into tiles.
struct TileFlags {
  std::string size;
  absl::optional<double> overlap;
  std::string merge = "nms";
  std::string match = "iou";

  void AddTo(FlagSet* flags) {
    flags->Add("tiles", "WxH",
               "look at each picture whole and in overlapping tiles of this "
               "size, for small objects; auto: the smallest that the server "
               "allows",
               &size);
    flags->Add("tile_overlap", "F",
               "what neighbouring tiles share, as a fraction of their side, 0 "
               "to 0.9; not given: 0.2",
               &overlap);
    flags->Add("tile_merge", "RULE",
               "of an object's boxes in several tiles keep the best (nms), or "
               "let it grow around them (greedy_nmm)",
               &merge);
    flags->Add("tile_match", "METRIC",
               "boxes of several tiles are of one object if half of their "
               "union (iou) or of the smaller (ios) overlaps",
               &match);
  }

  absl::Status Fill(v1::DetectParams* params) const {
    if (size.empty()) return absl::OkStatus();
    v1::Tiles& tiles = *params->mutable_tiles();
    if (size != "auto") {
      int32_t width = 0, height = 0;
      const absl::Status status = ParseSize("tiles", size, &width, &height);
      if (!status.ok()) return status;
      tiles.set_width(width);
      tiles.set_height(height);
    }
    if (overlap) tiles.set_overlap(*overlap);
    v1::Tiles::Merge rule;
    if (!v1::Tiles::Merge_Parse(absl::AsciiStrToUpper(merge), &rule)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--tile_merge: got \"", merge, "\", expected nms or greedy_nmm"));
    }
    tiles.set_merge(rule);
    v1::Tiles::Match metric;
    if (!v1::Tiles::Match_Parse(absl::AsciiStrToUpper(match), &metric)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--tile_match: got \"", match, "\", expected iou or ios"));
    }
    tiles.set_match(metric);
    return absl::OkStatus();
  }
};

struct DetectFlags {
  PredictFlags predict;
  PictureFlags picture;
  TileFlags tiles;
  double score_threshold = 0.5;
  absl::optional<double> nms_iou_threshold;
  int max_detections = 0;
  bool masks = true;
  std::string crops_model;

  void AddTo(FlagSet* flags) {
    predict.common.deadline = kPictureDeadline;
    predict.AddTo("detector", flags);
    picture.AddTo(flags);
    flags->Add("score_threshold", "S",
               "only objects with a score above it, 0 to 1", &score_threshold);
    flags->Add("nms_iou_threshold", "T",
               "of two objects of a class that overlap by more (intersection "
               "over union), only the better; not given: the model's own",
               &nms_iou_threshold);
    flags->Add("max_detections", "N",
               "objects a picture at most; 0: the model's own",
               &max_detections);
    flags->Add("masks", "",
               "ask for masks where the model has them; on unless "
               "--masks=false",
               &masks);
    tiles.AddTo(flags);
    flags->Add("crops_model", "NAME",
               "a classifier that names what each object's box shows; empty: "
               "none",
               &crops_model);
  }

  // Returns INVALID_ARGUMENT with the name of a flag that is wrong.
  absl::StatusOr<v1::DetectRequest> ToRequest() const {
    v1::DetectRequest request;
    v1::DetectParams* params = request.mutable_params();
    absl::Status status = picture.ParseClasses(params->mutable_class_filter());
    if (status.ok()) status = tiles.Fill(params);
    if (!status.ok()) return status;
    params->set_score_threshold(score_threshold);
    if (nms_iou_threshold) params->set_nms_iou_threshold(*nms_iou_threshold);
    params->set_max_detections(max_detections);
    if (masks) params->set_mask_encoding(v1::DetectParams::COCO_RLE);
    if (!crops_model.empty()) params->mutable_crops()->set_model(crops_model);
    return request;
  }
};

}  // namespace

int RunDetect(const std::vector<std::string>& arguments,
              const Console& console) {
  DetectFlags detect;
  FlagSet flags("sfmamba detect FILE... [flags]",
                "Finds objects in pictures (JPEG, PNG or WebP): boxes in "
                "pixels, and masks.");
  detect.AddTo(&flags);
  std::vector<std::string> files;
  if (const auto exit = ParseArguments(&flags, arguments, &files, console)) {
    return *exit;
  }
  if (files.empty()) return UsageError("detect needs a file", console);
  absl::StatusOr<v1::DetectRequest> request = detect.ToRequest();
  if (!request.ok()) return UsageError(request.status().message(), console);

  VerbActions<v1::DetectResult> actions;
  actions.check = CheckMasks;
  const bool with_crops = !detect.crops_model.empty();
  actions.rows = with_crops ? CropRows : ObjectRows;
  actions.write_json = WriteDetections;
  const absl::Status status =
      detect.picture.AddDrawing("detect", files, DrawDetections, &actions);
  if (!status.ok()) return UsageError(status.message(), console);
  const std::vector<FileOutcome> outcomes = PredictFiles<v1::DetectResponse>(
      files, *std::move(request), actions, detect.predict, console);
  VerbTable table = {
      {"label", ">score", ">x_min", ">y_min", ">x_max", ">y_max"},
      0,
      "(no object)"};
  if (with_crops) {
    table.headings.insert(table.headings.end(), {"crop", ">crop score"});
  }
  return ShowOutcomes(outcomes, table, detect.predict, console);
}

}  // namespace sfmamba::client
