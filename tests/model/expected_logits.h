#ifndef SFMAMBA_TESTS_MODEL_EXPECTED_LOGITS_H_
#define SFMAMBA_TESTS_MODEL_EXPECTED_LOGITS_H_

#include <ostream>
#include <vector>

#include "model/config.h"

namespace sfmamba::model {

// Logits of models with deterministic parameters on deterministic images,
// computed in fp64. fp32 must agree within 1e-4. docs/network.md, "How it is
// checked", explains where they come from.

// The logits of a published variant on two images of 224 x 224.
struct ExpectedVariant {
  const char* variant;
  std::vector<float> first;   // The logits of image 0.
  std::vector<float> second;  // The logits of image 1.
  double sum;                 // Sum of both images' logits.
  int argmax;                 // The top class of both images.
};

std::vector<ExpectedVariant> ExpectedVariants();
std::ostream& operator<<(std::ostream& out, const ExpectedVariant& expected);

// The logits of a modified small model on two images of kSmallHeight x
// kSmallWidth pixels.
struct ExpectedLogits {
  const char* name;
  void (*change)(BackboneConfig&);  // Modifies SmallModel().
  std::vector<float> logits;        // Logits of both images.
};

std::vector<ExpectedLogits> ExpectedOfSmallModel();
std::ostream& operator<<(std::ostream& out, const ExpectedLogits& expected);

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_EXPECTED_LOGITS_H_
