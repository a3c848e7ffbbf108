#ifndef SFMAMBA_CLIENT_EVAL_SCORES_H_
#define SFMAMBA_CLIENT_EVAL_SCORES_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "client/picture/masks.h"

namespace sfmamba::client {

// Counts how often the right class is among the first k answers.
class TopKScore {
 public:
  // `rank` is the position of the right class, from 0. It is negative if the
  // right class was not answered.
  void Add(int rank);

  int64_t count() const { return count_; }
  // Returns the fraction of ranks in [0, k), where k is 1..5. Returns 0 if
  // nothing was added.
  double Top(int k) const;

 private:
  int64_t count_ = 0;
  int64_t within_[6] = {};  // within_[k] is the number of ranks in [0, k).
};

// A confusion matrix. It counts how often each class was answered for each
// right class, in images of a classifier or in pixels of a segmenter. Classes
// are numbers from 0.
class Confusion {
 public:
  static constexpr int kNone = -1;  // No class was answered.

  struct Counts {
    int64_t right = 0, answered = 0, both = 0;

    // Recall(), Precision() and Iou() return NaN if they would divide by 0.
    double Recall() const { return static_cast<double>(both) / right; }
    double Precision() const { return static_cast<double>(both) / answered; }
    // Intersection over union. Source: PASCAL VOC's segmentation measure.
    double Iou() const {
      return static_cast<double>(both) / (right + answered - both);
    }
  };

  void Add(int right, int answered, int64_t count = 1);
  // Adds the pixels of a map, except the pixels that `right` ignores. Returns
  // INVALID_ARGUMENT if the maps differ in size.
  absl::Status Add(const IndexMap& right, const IndexMap& answer);

  int64_t at(int right, int answered) const;
  // Returns the counts of each class that occurs in the ground truth or in an
  // answer.
  std::map<int, Counts> Classes() const;
  // Returns the mean of Iou() over Classes(), like mmsegmentation's mIoU.
  // Returns 0 if there is no class.
  double MeanIou() const;
  // Returns the fraction of images or pixels whose answer is right. Returns 0
  // if there are none.
  double Accuracy() const;

 private:
  std::map<int, std::map<int, int64_t>> counts_;  // [right][answered]
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_SCORES_H_
