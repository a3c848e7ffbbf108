// Prints the figures that DetectorScore computes for results in COCO's format.
// average_precision_test.py runs this program.
//
// usage: score_results ANNOTATIONS IMAGES RESULTS

#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "client/eval/detector_score.h"
#include "nlohmann/json.hpp"

namespace sfmamba::client {
namespace {

using nlohmann::json;

v1::DetectResult ResultOf(const CocoPicture& picture,
                          const std::vector<json>& found,
                          const std::map<int64_t, std::string>& labels) {
  v1::DetectResult result;
  result.set_image_width(picture.width);
  result.set_image_height(picture.height);
  for (const json& one : found) {
    v1::Detection& detection = *result.add_detections();
    detection.set_label(labels.at(one["category_id"]));
    detection.set_score(one["score"]);
    const std::vector<float> box = one["bbox"];
    detection.mutable_box()->set_x_min(box[0]);
    detection.mutable_box()->set_y_min(box[1]);
    detection.mutable_box()->set_x_max(box[0] + box[2]);
    detection.mutable_box()->set_y_max(box[1] + box[3]);
    if (one.contains("segmentation")) {
      detection.mutable_rle()->set_counts(one["segmentation"]["counts"]);
    }
  }
  return result;
}

json Figures(const AveragePrecision& score,
             const std::map<int64_t, std::string>& labels) {
  json classes = json::object();
  for (const auto& [id, figures] : score.ByClass()) {
    classes[labels.at(id)] = figures.ap;
  }
  return {{"ap", score.Mean().ap},
          {"ap50", score.Mean().ap50},
          {"classes", classes}};
}

int Main(const std::string& annotations, const std::string& images,
         const std::string& results) {
  const absl::StatusOr<CocoFile> file = ReadCocoFile(annotations, {images});
  if (!file.ok()) {
    std::cerr << file.status() << "\n";
    return 1;
  }
  std::map<int64_t, std::string> labels;
  std::map<std::string, int64_t> ids;
  for (const CocoCategory& category : file->categories) {
    labels[category.id] = category.name;
    ids[category.name] = category.id;
  }
  std::map<int64_t, std::vector<json>> found;
  std::ifstream in(results);
  for (const json& one : json::parse(in)) found[one["image_id"]].push_back(one);
  DetectorScore score(ids);
  for (const CocoPicture& picture : file->pictures) {
    const absl::Status added =
        score.Add(picture, ResultOf(picture, found[picture.id], labels));
    if (!added.ok()) {
      std::cerr << added << "\n";
      return 1;
    }
  }
  json report = {{"box", Figures(score.boxes(), labels)}};
  if (score.masks() != nullptr)
    report["mask"] = Figures(*score.masks(), labels);
  std::cout << report << "\n";
  return 0;
}

}  // namespace
}  // namespace sfmamba::client

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return sfmamba::client::Main(argv[1], argv[2], argv[3]);
}
