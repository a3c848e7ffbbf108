#ifndef SFMAMBA_CLIENT_EVAL_AVERAGE_PRECISION_H_
#define SFMAMBA_CLIENT_EVAL_AVERAGE_PRECISION_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace sfmamba::client {

// Average precision of boxes or masks, as COCO defines it. It is computed at
// 101 values of recall, for ten thresholds of intersection over union (IoU)
// from 0.50 to 0.95. Objects of all sizes are counted. For each class and
// image, only the 100 detections with the highest scores are counted. Results
// are equal to pycocotools' results. Source: cocoeval.py.
//
// Thread-compatible.
class AveragePrecision {
 public:
  static constexpr int kThresholds = 10;

  struct Figures {
    double ap50 = 0;  // Average precision at an IoU of 0.50.
    double ap = 0;    // Mean of the average precisions at all ten IoUs.
  };

  // The objects and detections of one class in one image. A crowd is a region
  // in which any number of detections may lie. Detections in a crowd count
  // neither as right nor as wrong. `iou` returns the IoU of a detection and an
  // object, both given by index. If the object is a crowd, `iou` returns the
  // fraction of the detection that lies in the crowd.
  struct Matches {
    // Indexed by object.
    std::vector<bool> crowds;
    // Indexed by detection.
    std::vector<double> scores;
    std::function<double(int detection, int object)> iou;
  };
  // Called once for each class and image. Detections of equal scores are ranked
  // by `image_id`, the lowest first.
  void Add(int64_t class_id, int64_t image_id, const Matches& matches);

  // Returns the figures of each class that has objects other than crowds.
  std::map<int64_t, Figures> ByClass() const;
  // Returns the mean of ByClass(), or NaN if there is no class.
  Figures Mean() const;

 private:
  enum class Outcome : uint8_t { kFalse, kTrue, kIgnored };

  struct Detection {
    double score;
    int64_t image_id;
    std::array<Outcome, kThresholds> outcomes;
  };
  struct Class {
    int64_t objects = 0;  // Number of objects that are not crowds.
    std::vector<Detection> detections;
  };

  static Figures FiguresOf(const Class& one);

  std::map<int64_t, Class> classes_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_AVERAGE_PRECISION_H_
