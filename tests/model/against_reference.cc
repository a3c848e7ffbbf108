#include "tests/model/against_reference.h"

#include <limits>
#include <optional>
#include <ostream>

#include "ATen/TensorOperators.h"
#include "kernels/simd/cpu_features.h"
#include "model/ops/compute_type.h"
#include "model/ops/cuda/cuda_implementation.h"
#include "model/tuning/scan_plan_chooser.h"
#include "tests/model/emulated_device.h"

namespace sfmamba::model {
namespace {

const char* SuffixOf(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      break;
    case Precision::kBFloat16:
      return "Bf16";
    case Precision::kFloat16:
      return "Fp16";
    case Precision::kInt8:
      return "Int8";
  }
  return "";
}

const char* SuffixOf(kernels::CpuIsa isa) {
  switch (isa) {
    case kernels::CpuIsa::kScalar:
      break;
    case kernels::CpuIsa::kAvx2:
      return "Avx2";
    case kernels::CpuIsa::kAvx512:
      return "Avx512";
  }
  return "Scalar";
}

TestedImplementation OnEmulator(Precision precision) {
  static const auto& chooser = *new tuning::ScanPlanChooser(
      {"some GPU", 132, "some build"}, std::nullopt, /*deterministic=*/false);
  const auto* cuda = new ops::CudaImplementation(EmulatedOps(), at::kCPU,
                                                 {precision, &chooser});
  const at::ScalarType type = ops::ComputeType(precision);
  return {std::string("Cuda") + SuffixOf(precision),
          cuda,
          type,
          type,
          type,
          type,
          /*reads_pixels=*/true};
}

std::vector<TestedImplementation> MakeAll() {
  const kernels::CpuIsa isa = kernels::ActiveCpuIsa();
  std::vector<TestedImplementation> all = {{std::string("Cpu") + SuffixOf(isa),
                                            &Cpu(), at::kFloat, at::kFloat,
                                            at::kFloat, at::kFloat}};
  if (isa < kernels::DetectCpuIsa()) return all;
  all.push_back({"CpuBf16", &Cpu(Precision::kBFloat16), at::kFloat, at::kFloat,
                 at::kFloat, at::kBFloat16,
                 /*reads_pixels=*/false});
  all.push_back({"CpuInt8", &Cpu(Precision::kInt8), at::kFloat, at::kFloat,
                 at::kFloat, at::kChar,
                 /*reads_pixels=*/false});
  for (const Precision precision :
       {Precision::kFloat32, Precision::kBFloat16, Precision::kFloat16}) {
    all.push_back(OnEmulator(precision));
  }
  return all;
}

}  // namespace

std::vector<TestedImplementation> TestedImplementations() {
  static const auto& all = *new std::vector<TestedImplementation>(MakeAll());
  return all;
}

at::Tensor RandomValues(const std::string& key, at::IntArrayRef shape) {
  // DeterministicParameter() divides the variance by the fan-in, which is the
  // product of all sizes except the first. The added axis of size 1 makes the
  // fan-in 1, so the values have a variance of 1.
  return DeterministicParameter(key, {c10::multiply_integers(shape), 1})
      .view(shape);
}

at::Tensor AgainstReference::Map(const at::Tensor& x) {
  return x.to(GetParam().type).contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor AgainstReference::Normed(const at::Tensor& x) {
  return x.to(GetParam().normed);
}

ops::Residual AgainstReference::Stream(const at::Tensor& x) {
  return ops::Residual(x.clone().to(GetParam().stream));
}

double AgainstReference::Tolerance() {
  switch (GetParam().products) {
    case at::kBFloat16:
      return 4 * std::numeric_limits<c10::BFloat16>::epsilon();
    case at::kHalf:
      return 4 * std::numeric_limits<c10::Half>::epsilon();
    case at::kChar:
      return 6 / 127.0;
    default:
      return 2e-5;
  }
}

void AgainstReference::ExpectNear(const at::Tensor& actual,
                                  const at::Tensor& expected) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  if (expected.numel() == 0) return;
  const double largest = expected.abs().max().item<double>();
  EXPECT_GT(largest, 0);
  EXPECT_LE((actual.to(at::kFloat) - expected).abs().max().item<double>(),
            Tolerance() * largest);
}

void PrintTo(const TestedImplementation& implementation, std::ostream* out) {
  *out << implementation.name;
}

}  // namespace sfmamba::model
