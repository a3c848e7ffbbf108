#ifndef SFMAMBA_TESTS_MODEL_EXPECTED_LOGITS_H_
#define SFMAMBA_TESTS_MODEL_EXPECTED_LOGITS_H_

#include <ostream>
#include <vector>

#include "model/config.h"

namespace sfmamba::model {

// Logits of models with deterministic parameters on deterministic images,
// computed in fp64: to be met within 1e-4 in fp32. docs/network.md, "How it is
// checked", says what they rest on.

// Of a published variant on two images of 224 x 224.
struct ExpectedVariant {
  const char* variant;
  std::vector<float> first;   // Logits of image 0, from its first on.
  std::vector<float> second;  // Of image 1.
  double sum;                 // Of both images' logits.
  int argmax;                 // Of either image.
};

std::vector<ExpectedVariant> ExpectedVariants();
std::ostream& operator<<(std::ostream& out, const ExpectedVariant& expected);

// Of a kind of the small model on two images of kSmallHeight x kSmallWidth.
struct ExpectedLogits {
  const char* name;
  void (*change)(BackboneConfig&);  // Makes the kind of SmallModel().
  std::vector<float> logits;        // Of both images.
};

std::vector<ExpectedLogits> ExpectedOfSmallModel();
std::ostream& operator<<(std::ostream& out, const ExpectedLogits& expected);

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_EXPECTED_LOGITS_H_
