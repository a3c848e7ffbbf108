#ifndef SFMAMBA_CLIENT_EVAL_AGREEMENT_H_
#define SFMAMBA_CLIENT_EVAL_AGREEMENT_H_

#include <cstdint>
#include <vector>

#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// Measures how similar the answers of two models to the same pictures are. One
// model is the reference, with which the other model is compared. Segmenters
// are compared by Confusion.

// Compares two classifiers.
class LogitAgreement {
 public:
  // Adds the logits of one picture, one per class. Both vectors have the same
  // size and are not empty.
  void Add(const std::vector<float>& logits,
           const std::vector<float>& reference);

  // Returns the fraction of pictures for which both models give the largest
  // logit to the same class.
  double SameFirstClass() const;
  // Returns the root mean square of the differences between the models' logits,
  // divided by the standard deviation of the reference's logits. Both are taken
  // over all pictures and classes.
  double Rms() const;

 private:
  int64_t pictures_ = 0, same_first_ = 0, logits_ = 0;
  double squared_differences_ = 0;
  double sum_ = 0, squares_ = 0;  // Sums over the reference's logits.
};

// Compares two detectors by their boxes with scores above 0.5.
class BoxAgreement {
 public:
  void Add(const v1::DetectResult& result, const v1::DetectResult& reference);

  // Returns the fraction of both models' boxes that are matched. A match is a
  // pair of boxes, one from each model, with the same label and an intersection
  // over union of at least 0.9. Each box is in at most one match.
  double Matched() const;

 private:
  int64_t boxes_ = 0, matched_ = 0;  // Count the boxes of both models.
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_AGREEMENT_H_
