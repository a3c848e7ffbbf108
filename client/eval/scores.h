#ifndef SFMAMBA_CLIENT_EVAL_SCORES_H_
#define SFMAMBA_CLIENT_EVAL_SCORES_H_

#include <cstdint>
#include <vector>

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

// Intersection over union of each class, over all pixels of all maps. Source:
// PASCAL VOC's segmentation measure; mmsegmentation's mIoU.
class IouScore {
 public:
  // Pixels that `right` ignores are left out. INVALID_ARGUMENT if the maps
  // differ in size.
  absl::Status Add(const IndexMap& right, const IndexMap& answer);

  // Over the classes that either map has anywhere; 0 if there are none.
  double MeanIou() const;
  // The share of pixels, ignored ones apart, whose class is right.
  double Accuracy() const;

 private:
  struct Pixels {
    int64_t right = 0, answered = 0, both = 0;
  };

  std::vector<Pixels> classes_;  // By number.
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_SCORES_H_
