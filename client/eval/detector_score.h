#ifndef SFMAMBA_CLIENT_EVAL_DETECTOR_SCORE_H_
#define SFMAMBA_CLIENT_EVAL_DETECTOR_SCORE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "client/eval/average_precision.h"
#include "client/eval/coco_file.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

CocoBox ToCocoBox(const v1::BoundingBox& box);

// Returns the intersection over union of two boxes. If `object` is a crowd,
// returns the fraction of `found` that lies in it.
double Iou(const CocoBox& found, const CocoBox& object, bool crowd = false);

// Measures how precise a detector's boxes and masks are. Thread-compatible.
class DetectorScore {
 public:
  // `categories` maps labels to category ids. Detections with other labels are
  // not counted.
  explicit DetectorScore(std::map<std::string, int64_t> categories)
      : categories_(std::move(categories)) {}

  // Adds the answer for a picture. Returns INVALID_ARGUMENT if the answer is
  // for another size than the dataset's. Returns DATA_LOSS if a mask is
  // malformed. After an error, the picture's objects count as not detected.
  absl::Status Add(const CocoPicture& picture, const v1::DetectResult& result);
  // Adds a picture without an answer. Its objects count as not detected.
  void AddUnanswered(const CocoPicture& picture) { Count(picture, {}); }

  // Returns the number of objects that are not crowds.
  int64_t objects(int64_t category_id) const;
  const AveragePrecision& boxes() const { return boxes_; }
  // Returns null unless there are objects and all of them have masks. Also
  // returns null if there are detections but none of them has a mask.
  const AveragePrecision* masks() const;

 private:
  struct Found {
    int64_t category_id;
    double score;
    CocoBox box;
    std::optional<RunLengths> mask;
  };

  void Count(const CocoPicture& picture, const std::vector<Found>& found);

  const std::map<std::string, int64_t> categories_;
  AveragePrecision boxes_, masks_;
  std::map<int64_t, int64_t> objects_;
  bool found_any_ = false, found_masks_ = false;
  bool has_masks_ = false, lacks_masks_ = false;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_DETECTOR_SCORE_H_
