#include "client/commands/segment_command.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/commands/picture_flags.h"
#include "client/commands/predict_files.h"
#include "client/picture/draw.h"
#include "client/picture/masks.h"

namespace sfmamba::client {
namespace {

// Returns DATA_LOSS if the map cannot be decoded.
absl::Status CheckMap(const v1::SegmentResult& result) {
  return DecodeIndexMap(result).status();
}

// Returns a row for each class, the largest area first.
Rows ClassRows(const v1::SegmentResult& result) {
  std::vector<v1::ClassArea> areas(result.areas().begin(),
                                   result.areas().end());
  std::stable_sort(areas.begin(), areas.end(),
                   [](const v1::ClassArea& a, const v1::ClassArea& b) {
                     return a.pixel_count() > b.pixel_count();
                   });
  Rows rows;
  for (const v1::ClassArea& area : areas) {
    rows.push_back({area.label(), absl::StrCat(area.pixel_count()),
                    absl::StrFormat("%.2f", 100 * area.fraction())});
  }
  return rows;
}

void WriteAreas(const v1::SegmentResult& result, JsonWriter* json) {
  json->Key("width").Integer(result.width());
  json->Key("height").Integer(result.height());
  json->Key("areas").BeginArray();
  for (const v1::ClassArea& area : result.areas()) {
    json->BeginObject();
    json->Key("class_id").Integer(area.class_id());
    json->Key("label").String(area.label());
    json->Key("pixel_count").Integer(area.pixel_count());
    json->Key("fraction").Number(area.fraction());
    json->EndObject();
  }
  json->EndArray();
}

// Sets the request's sliding window from --slide and, if given, --stride.
absl::Status AddWindow(const std::string& size, const std::string& stride,
                       v1::SegmentParams* params) {
  if (size.empty()) {
    return stride.empty() ? absl::OkStatus()
                          : absl::InvalidArgumentError(
                                "--stride: expected --slide beside it");
  }
  int32_t width = 0, height = 0;
  absl::Status status = ParseSize("slide", size, &width, &height);
  if (!status.ok()) return status;
  v1::SlidingWindow* const slide = params->mutable_slide();
  slide->set_width(width);
  slide->set_height(height);
  if (stride.empty()) return absl::OkStatus();
  status = ParseSize("stride", stride, &width, &height);
  slide->set_stride_x(width);
  slide->set_stride_y(height);
  return status;
}

}  // namespace

int RunSegment(const std::vector<std::string>& arguments,
               const Console& console) {
  PredictFlags predict;
  PictureFlags picture_flags;
  FlagSet flags("sfmamba segment FILE... [flags]",
                "Tells the class of each pixel of pictures (JPEG, PNG or "
                "WebP), and how much of a\npicture each class covers.");
  predict.common.deadline = kPictureDeadline;
  predict.AddTo("segmenter", &flags);
  picture_flags.AddTo(&flags);
  std::string slide, stride;
  flags.Add("slide", "WxH",
            "look at the resized picture through a window of this size; empty: "
            "as a whole",
            &slide);
  flags.Add("stride", "WxH",
            "how far the window moves; empty: two thirds of its size", &stride);
  std::vector<std::string> files;
  if (const auto exit = ParseArguments(&flags, arguments, &files, console)) {
    return *exit;
  }
  if (files.empty()) return UsageError("segment needs a file", console);

  v1::SegmentRequest request;
  request.mutable_params()->set_include_class_areas(true);
  absl::Status status = picture_flags.ParseClasses(
      request.mutable_params()->mutable_class_filter());
  if (status.ok()) status = AddWindow(slide, stride, request.mutable_params());
  if (!status.ok()) return UsageError(status.message(), console);
  VerbActions<v1::SegmentResult> actions;
  actions.check = CheckMap;
  actions.rows = ClassRows;
  actions.write_json = WriteAreas;
  status =
      picture_flags.AddDrawing("segment", files, DrawSegmentation, &actions);
  if (!status.ok()) return UsageError(status.message(), console);
  const std::vector<FileOutcome> outcomes = PredictFiles<v1::SegmentResponse>(
      files, std::move(request), actions, predict, console);
  const VerbTable table = {{"class", ">pixels", ">percent"}, 0, "(no class)"};
  return ShowOutcomes(outcomes, table, predict, console);
}

}  // namespace sfmamba::client
