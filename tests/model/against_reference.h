#ifndef SFMAMBA_TESTS_MODEL_AGAINST_REFERENCE_H_
#define SFMAMBA_TESTS_MODEL_AGAINST_REFERENCE_H_

#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"
#include "tests/model/implementations.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::model {

// An implementation that tests compare with the reference.
struct TestedImplementation {
  std::string name;                // "CpuAvx512", "CudaBf16"
  const ops::Implementation* ops;  // Never destroyed.
  at::ScalarType type;             // The type of maps.
  at::ScalarType normed;           // The type of a LayerNorm's result.
  at::ScalarType stream;    // The residual stream's type without layer scales.
  at::ScalarType products;  // The type that products round to.
  bool reads_pixels;        // Whether a network's input may be pixels.
};

// All implementations of this machine: the CPU in fp32 with the kernels of the
// active instruction set, the CPU in bf16 and int8, and CUDA's on the emulator
// in all three types. If SFMAMBA_CPU_ISA names a lesser instruction set than
// the machine's, only the first is returned, because the others do not depend
// on it.
std::vector<TestedImplementation> TestedImplementations();

// Returns values with mean 0 and variance 1. They depend only on the key.
at::Tensor RandomValues(const std::string& key, at::IntArrayRef shape);

// Compares a part of the network, made from each implementation's operators,
// with the same part made from the reference's operators.
class AgainstReference : public testing::TestWithParam<TestedImplementation> {
 protected:
  // A part of the network, made twice from the same parameters.
  template <typename Part>
  struct Compared {
    Part tested, reference;
  };

  static const ops::Implementation& tested() { return *GetParam().ops; }
  static const ops::Implementation& reference() { return Reference(); }

  // Makes a part by make(scope, implementation) from deterministic parameters.
  template <typename Make>
  static auto Both(Make make) {
    weights::StateDict weights(DeterministicParameter);
    using Part = decltype(make(weights.root(), reference()));
    return Compared<Part>{make(weights.root(), tested()),
                          make(weights.root(), reference())};
  }

  // Return x in the form that the tested implementation's operators read. Map()
  // is for a map [N, C, H, W], and Normed() for the result of a LayerNorm.
  static at::Tensor Map(const at::Tensor& x);
  static at::Tensor Normed(const at::Tensor& x);
  // Returns a copy of x [rows, tokens, width] as the implementation's residual
  // stream.
  static ops::Residual Stream(const at::Tensor& x);

  // Expects that no value differs from the reference by more than a fraction of
  // the reference's largest value, at all shapes and depths. In fp32 the
  // fraction is 2e-5. Sums of some hundreds of products in another order, and
  // Winograd's method, round this much. In half precision the fraction is four
  // of the type's epsilons, because each product rounds its input, weights and
  // result to the type and sums in fp32. In int8 it is six steps of 1/127,
  // because modules have two or three products in sequence.
  static void ExpectNear(const at::Tensor& actual, const at::Tensor& expected);
  static double Tolerance();

 private:
  const c10::InferenceMode inference_;
};

// The cases' names, for INSTANTIATE_TEST_SUITE_P.
inline std::string NameOf(
    const testing::TestParamInfo<TestedImplementation>& info) {
  return info.param.name;
}
void PrintTo(const TestedImplementation& implementation, std::ostream* out);

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_AGAINST_REFERENCE_H_
