#ifndef SFMAMBA_CLIENT_EVAL_SCORES_H_
#define SFMAMBA_CLIENT_EVAL_SCORES_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "client/picture/masks.h"

namespace sfmamba::client {

// How often the right class is among the first k answers.
class TopKScore {
 public:
  // `rank` is the right class's place, from 0; negative: it was not answered.
  void Add(int rank);

  int64_t count() const { return count_; }
  // The share of those with rank < k; k is 1..5.
  double Top(int k) const;

 private:
  int64_t count_ = 0;
  int64_t within_[6] = {};  // [k]: with rank < k.
};

// How often each class was answered for each right one: images of a classifier,
// pixels of a segmenter. Classes are numbers from 0.
class Confusion {
 public:
  static constexpr int kNone = -1;  // No class was answered.

  struct Counts {
    int64_t right = 0, answered = 0, both = 0;

    // NaN where there is nothing to divide by.
    double Recall() const { return static_cast<double>(both) / right; }
    double Precision() const { return static_cast<double>(both) / answered; }
    // Intersection over union. Source: PASCAL VOC's segmentation measure.
    double Iou() const {
      return static_cast<double>(both) / (right + answered - both);
    }
  };

  void Add(int right, int answered, int64_t count = 1);
  // Adds pixels, without those that `right` ignores. INVALID_ARGUMENT if the
  // maps differ in size.
  absl::Status Add(const IndexMap& right, const IndexMap& answer);

  int64_t at(int right, int answered) const;
  // The classes that are right or answered anywhere.
  std::map<int, Counts> Classes() const;
  // The mean of Iou() over Classes(), as mmsegmentation's mIoU; 0 without any.
  double MeanIou() const;
  // The share of those counted whose class is right; 0 without any.
  double Accuracy() const;

 private:
  std::map<int, std::map<int, int64_t>> counts_;  // [right][answered]
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_SCORES_H_
