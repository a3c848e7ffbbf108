#ifndef SFMAMBA_CLIENT_EVAL_AVERAGE_PRECISION_H_
#define SFMAMBA_CLIENT_EVAL_AVERAGE_PRECISION_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace sfmamba::client {

// Average precision as COCO defines it, of boxes or of masks: at 101 points of
// recall, for ten thresholds of intersection over union (IoU) from 0.50 to
// 0.95, over objects of all sizes and the 100 best detections of a class in an
// image. The figures are those of pycocotools. Source: cocoeval.py.
//
// Thread-compatible.
class AveragePrecision {
 public:
  static constexpr int kThresholds = 10;

  struct Figures {
    double ap50 = 0;  // At an IoU of 0.50.
    double ap = 0;    // The mean over all thresholds.
  };

  // The objects and detections of one class in one image. A crowd is a region:
  // any number of detections may lie in it, and they count neither way. `iou`
  // tells the overlap of a detection with an object, both by index: with a
  // crowd, the fraction of the detection that lies in it.
  struct Matches {
    std::vector<bool> crowds;    // By object.
    std::vector<double> scores;  // By detection.
    std::function<double(int detection, int object)> iou;
  };
  // Called once for each image and class. If detections have equal scores, the
  // one of the lower `image_id` comes first.
  void Add(int64_t class_id, int64_t image_id, const Matches& matches);

  // The figures of each class that has objects beside crowds.
  std::map<int64_t, Figures> ByClass() const;
  // Their mean; NaN if there is no class.
  Figures Mean() const;

 private:
  enum class Outcome : uint8_t { kFalse, kTrue, kIgnored };

  struct Detection {
    double score;
    int64_t image_id;
    std::array<Outcome, kThresholds> outcomes;
  };
  struct Class {
    int64_t objects = 0;  // Without crowds.
    std::vector<Detection> detections;
  };

  static Figures FiguresOf(const Class& one);

  std::map<int64_t, Class> classes_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_AVERAGE_PRECISION_H_
