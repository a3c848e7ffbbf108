#ifndef SFMAMBA_TESTS_MODEL_EXPECTED_LOGITS_H_
#define SFMAMBA_TESTS_MODEL_EXPECTED_LOGITS_H_

#include <ostream>
#include <vector>

#include "model/config.h"

namespace sfmamba::model {

// Logits of models with deterministic parameters on deterministic images,
// computed in fp64: to be met within 1e-4 in fp32. docs/network.md, "How it is
// checked", says what they rest on.

// The logits of a published variant on two images of 224 x 224.
struct ExpectedVariant {
  const char* variant;
  std::vector<float> first;   // Logits of image 0, from its first on.
  std::vector<float> second;  // Logits of image 1.
  double sum;                 // The sum of both images' logits.
  int argmax;                 // Both images' first class.
};

std::vector<ExpectedVariant> ExpectedVariants();
std::ostream& operator<<(std::ostream& out, const ExpectedVariant& expected);

// The logits of a kind of the small model on two images of kSmallHeight x
// kSmallWidth.
struct ExpectedLogits {
  const char* name;
  void (*change)(BackboneConfig&);  // Makes the kind of SmallModel().
  std::vector<float> logits;        // Both images'.
};

std::vector<ExpectedLogits> ExpectedOfSmallModel();
std::ostream& operator<<(std::ostream& out, const ExpectedLogits& expected);

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_EXPECTED_LOGITS_H_
