#ifndef SFMAMBA_CLIENT_EVAL_AGREEMENT_H_
#define SFMAMBA_CLIENT_EVAL_AGREEMENT_H_

#include <cstdint>
#include <vector>

#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// How alike two models answer the same pictures: a model and the one that it is
// compared with, its reference. Segmenters are compared by Confusion.

// Compares two classifiers.
class LogitAgreement {
 public:
  // Adds the logits of a picture, by class. Both have one size, at least 1.
  void Add(const std::vector<float>& logits,
           const std::vector<float>& reference);

  // Returns the share of pictures whose largest logit is of the same class.
  double SameFirstClass() const;
  // Returns the root mean square of the differences of the logits of all
  // pictures and classes, divided by the standard deviation of the reference's
  // logits.
  double Rms() const;

 private:
  int64_t pictures_ = 0, same_first_ = 0, logits_ = 0;
  double squared_differences_ = 0;
  double sum_ = 0, squares_ = 0;  // The reference's.
};

// Compares two detectors by their boxes with scores above 0.5.
class BoxAgreement {
 public:
  void Add(const v1::DetectResult& result, const v1::DetectResult& reference);

  // Returns the share of both models' boxes that are matched: each with at most
  // one box of the other model that has the same label and an intersection over
  // union of 0.9 or more.
  double Matched() const;

 private:
  int64_t boxes_ = 0, matched_ = 0;  // Both models are counted.
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_AGREEMENT_H_
