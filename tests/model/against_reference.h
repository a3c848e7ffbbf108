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
  std::string name;                // Such as "CpuAvx512" or "CudaBf16".
  const ops::Implementation* ops;  // Never destroyed.
  at::ScalarType type;             // The type of maps.
  at::ScalarType normed;           // The type of a LayerNorm's result.
  // The type of the residual stream in networks without layer scales.
  at::ScalarType stream;
  // The type to which matrix products round their inputs and weights.
  at::ScalarType products;
  bool reads_pixels;  // Whether the network's input may be uint8 pixels.
};

// Returns all implementations that this machine can test, in this order:
// - The CPU in fp32, with the kernels of the active instruction set.
// - The CPU in bf16 and in int8.
// - The CUDA implementation in fp32, bf16 and fp16. An emulator runs its
//   kernels on the CPU.
// If the environment variable SFMAMBA_CPU_ISA limits the instruction set,
// returns only the CPU in fp32. The other implementations are tested without
// this variable.
std::vector<TestedImplementation> TestedImplementations();

// Returns random values with mean 0 and variance 1. They depend only on the
// key.
at::Tensor RandomValues(const std::string& key, at::IntArrayRef shape);

// Compares a part of the network on each implementation's operators with the
// same part on the reference's operators.
class AgainstReference : public testing::TestWithParam<TestedImplementation> {
 protected:
  // A part of the network on both implementations, with the same parameters.
  template <typename Part>
  struct Compared {
    Part tested, reference;
  };

  static const ops::Implementation& tested() { return *GetParam().ops; }
  static const ops::Implementation& reference() { return Reference(); }

  // Makes a part on both implementations by make(scope, implementation). The
  // parameters are deterministic.
  template <typename Make>
  static auto Both(Make make) {
    weights::StateDict weights(DeterministicParameter);
    using Part = decltype(make(weights.root(), reference()));
    return Compared<Part>{make(weights.root(), tested()),
                          make(weights.root(), reference())};
  }

  // Return x in the type and memory format that the tested implementation's
  // operators read. Map() is for maps [N, C, H, W]. Normed() is for results of
  // a LayerNorm.
  static at::Tensor Map(const at::Tensor& x);
  static at::Tensor Normed(const at::Tensor& x);
  // Returns a copy of x [rows, tokens, width] as a residual stream of the
  // implementation.
  static ops::Residual Stream(const at::Tensor& x);

  // Expects that no value differs from the reference by more than a fraction of
  // the reference's largest value. Tolerance() returns this fraction. It is the
  // same for all shapes and depths:
  // - fp32: 2e-5. Winograd's method causes rounding errors of this size. Sums
  //   of several hundred terms in another order cause them, too.
  // - bf16 and fp16: four times the type's epsilon. Each matrix product rounds
  //   its input, weights and result to the type and sums in fp32.
  // - int8: 6/127, which is six quantization steps. Modules have two or three
  //   matrix products in sequence, and each adds its own error.
  static void ExpectNear(const at::Tensor& actual, const at::Tensor& expected);
  static double Tolerance();

 private:
  const c10::InferenceMode inference_;
};

// Returns the name of a case, for INSTANTIATE_TEST_SUITE_P.
inline std::string NameOf(
    const testing::TestParamInfo<TestedImplementation>& info) {
  return info.param.name;
}
void PrintTo(const TestedImplementation& implementation, std::ostream* out);

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_AGAINST_REFERENCE_H_
