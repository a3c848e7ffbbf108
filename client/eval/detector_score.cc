#include "client/eval/detector_score.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace sfmamba::client {
namespace {

double Iou(const RunLengths& found, const RunLengths& object, bool crowd) {
  const double both = IntersectionArea(found, object);
  if (both == 0) return 0;
  return both / (crowd ? found.Area() : found.Area() + object.Area() - both);
}

}  // namespace

CocoBox ToCocoBox(const v1::BoundingBox& box) {
  return {box.x_min(), box.y_min(), box.x_max() - box.x_min(),
          box.y_max() - box.y_min()};
}

// Source: pycocotools, maskApi.c, bbIou().
double Iou(const CocoBox& found, const CocoBox& object, bool crowd) {
  const double width =
      std::min(found.x + found.width, object.x + object.width) -
      std::max(found.x, object.x);
  const double height =
      std::min(found.y + found.height, object.y + object.height) -
      std::max(found.y, object.y);
  if (width <= 0 || height <= 0) return 0;
  const double both = width * height;
  const double area = found.width * found.height;
  return both / (crowd ? area : area + object.width * object.height - both);
}

absl::Status DetectorScore::Add(const CocoPicture& picture,
                                const v1::DetectResult& result) {
  const int width = result.image_width(), height = result.image_height();
  if (picture.width > 0 &&
      (picture.width != width || picture.height != height)) {
    AddUnanswered(picture);
    return absl::InvalidArgumentError(
        absl::StrCat("the dataset says ", picture.width, "x", picture.height,
                     " pixels, the answer is for ", width, "x", height));
  }
  std::vector<Found> all;
  for (const v1::Detection& detection : result.detections()) {
    const auto category = categories_.find(detection.label());
    if (category == categories_.end()) continue;
    Found found{category->second, detection.score(), ToCocoBox(detection.box()),
                std::nullopt};
    if (detection.has_rle()) {
      absl::StatusOr<RunLengths> mask =
          FromCompressed(detection.rle().counts(), width, height);
      if (!mask.ok()) {
        AddUnanswered(picture);
        return absl::DataLossError(
            absl::StrCat("RLE: ", mask.status().message()));
      }
      found.mask = *std::move(mask);
    }
    all.push_back(std::move(found));
  }
  Count(picture, all);
  return absl::OkStatus();
}

void DetectorScore::Count(const CocoPicture& picture,
                          const std::vector<Found>& found) {
  std::set<int64_t> ids;
  for (const CocoObject& object : picture.objects) {
    ids.insert(object.category_id);
    objects_[object.category_id] += !object.crowd;
    if (!object.crowd) (object.mask ? has_masks_ : lacks_masks_) = true;
  }
  for (const Found& one : found) {
    ids.insert(one.category_id);
    found_any_ = true;
    found_masks_ |= one.mask.has_value();
  }
  for (const int64_t id : ids) {
    AveragePrecision::Matches boxes, masks;
    std::vector<const CocoObject*> objects, outlined;
    std::vector<const Found*> detections, cut_out;
    for (const CocoObject& object : picture.objects) {
      if (object.category_id != id) continue;
      objects.push_back(&object);
      boxes.crowds.push_back(object.crowd);
      if (!object.mask) continue;
      outlined.push_back(&object);
      masks.crowds.push_back(object.crowd);
    }
    for (const Found& one : found) {
      if (one.category_id != id) continue;
      detections.push_back(&one);
      boxes.scores.push_back(one.score);
      if (!one.mask) continue;
      cut_out.push_back(&one);
      masks.scores.push_back(one.score);
    }
    boxes.iou = [&](int i, int j) {
      return Iou(detections[i]->box, objects[j]->box, objects[j]->crowd);
    };
    boxes_.Add(id, picture.id, boxes);
    masks.iou = [&](int i, int j) {
      return Iou(*cut_out[i]->mask, *outlined[j]->mask, outlined[j]->crowd);
    };
    masks_.Add(id, picture.id, masks);
  }
}

int64_t DetectorScore::objects(int64_t category_id) const {
  const auto found = objects_.find(category_id);
  return found == objects_.end() ? 0 : found->second;
}

const AveragePrecision* DetectorScore::masks() const {
  return has_masks_ && !lacks_masks_ && (found_masks_ || !found_any_) ? &masks_
                                                                      : nullptr;
}

}  // namespace sfmamba::client
