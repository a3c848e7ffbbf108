#include "model/tuning/scan_inputs.h"

#include <cmath>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/bfloat16.h"
#include "kernels/base/float16.h"
#include "kernels/cuda/gpu_device.h"
#include "kernels/scan/selective_scan_cuda.h"
#include "model/tuning/scan_search.h"

namespace sfmamba::tuning {
namespace {

// The number of random values. Larger tensors contain them repeatedly. The
// number is chosen so that no two nearby rows of a tensor are equal.
constexpr size_t kRandomValues = 100003;

template <typename T>
T* As(const kernels::GpuBuffer& buffer) {
  return static_cast<T*>(buffer.data());
}

// Resizes `buffer` to `count` values and fills it with copies of `values`.
template <typename T>
absl::Status Fill(kernels::GpuBuffer& buffer, const std::vector<T>& values,
                  size_t count) {
  const absl::Status resized = buffer.Resize(count * sizeof(T));
  if (!resized.ok()) return resized;
  return buffer.Fill(values.data(), values.size() * sizeof(T));
}

template <typename T>
class TypedScanInputs : public ScanInputs {
 public:
  absl::Status Init(const ScanShape& shape, const std::vector<int>& lengths) {
    shape_ = shape;
    args_.channels = shape.channels;
    args_.states = shape.states;
    absl::Status status = InitSequences(lengths);
    if (status.ok()) status = InitTokens();
    if (status.ok()) status = InitParameters();
    return status;
  }

  absl::Status Prepare(const kernels::ScanPlan& plan) override {
    const absl::Status valid = kernels::CheckScanPlan(plan);
    if (!valid.ok()) return valid;
    const size_t bytes = ScratchBytes(plan);
    return bytes > scratch_.bytes() ? scratch_.Resize(bytes) : absl::OkStatus();
  }

  absl::Status Enqueue(const kernels::ScanPlan& plan,
                       kernels::CudaStream stream) override {
    if (ScratchBytes(plan) > scratch_.bytes()) {
      return absl::FailedPreconditionError(
          absl::StrCat("scratch: expected ", ScratchBytes(plan), " bytes, got ",
                       scratch_.bytes(), "; call Prepare"));
    }
    return kernels::SelectiveScanCuda(args_, plan, scratch_.data(), stream);
  }

  int64_t tokens() const override { return tokens_; }

 private:
  size_t ScratchBytes(const kernels::ScanPlan& plan) const {
    return kernels::ScanScratchBytes(plan, shape_.sequences, shape_.channels,
                                     shape_.states);
  }

  absl::Status InitSequences(const std::vector<int>& lengths) {
    args_.sequences = {shape_.sequences, shape_.length};
    tokens_ = int64_t{shape_.sequences} * shape_.length;
    if (lengths.empty()) return absl::OkStatus();
    std::vector<int32_t> offsets = {0};
    for (const int length : lengths) offsets.push_back(offsets.back() + length);
    tokens_ = offsets.back();
    const absl::Status status = Fill(offsets_, offsets, offsets.size());
    args_.sequences.offsets = As<int32_t>(offsets_);
    return status;
  }

  absl::Status InitTokens() {
    const int64_t channels = shape_.channels, states = shape_.states;
    // The strides are the same as in the mixer. In the mixer, dt, B and C are
    // parts of the result of one matrix product, and y is one half of the next
    // product's input.
    args_.u_stride = channels;
    args_.dt_stride = args_.bc_stride = channels + 2 * states;
    args_.y_stride = 2 * channels;
    absl::Status status =
        Fill(u_, Normals<T>(kRandomValues, 0, 1), tokens_ * args_.u_stride);
    if (status.ok()) {
      // One call fills dt, B and C, so B and C have dt's standard deviation. It
      // need not be realistic for them, because their values do not affect the
      // speed.
      status = Fill(dtbc_, Normals<T>(kRandomValues, 0, 0.5f),
                    tokens_ * args_.dt_stride);
    }
    if (status.ok()) status = y_.Resize(tokens_ * args_.y_stride * sizeof(T));
    args_.u = As<T>(u_);
    args_.dt = As<T>(dtbc_);
    args_.B = args_.dt + channels;
    args_.C = args_.B + states;
    args_.y = As<T>(y_);
    return status;
  }

  absl::Status InitParameters() {
    const int channels = shape_.channels;
    std::vector<float> A = Normals<float>(shape_.states * channels, 0, 0.3f);
    for (size_t i = 0; i < A.size(); ++i) {
      // State n decays about n + 1 times as fast as state 0, as in a trained
      // model.
      A[i] = -static_cast<float>(i / channels + 1) * std::exp(A[i]);
    }
    absl::Status status = Fill(A_, A, A.size());
    if (status.ok())
      status = Fill(D_, Normals<float>(channels, 0, 1), channels);
    if (status.ok()) {
      // softplus(-4.6) = 0.01, a usual time step.
      status = Fill(bias_, Normals<float>(channels, -4.6f, 1), channels);
    }
    args_.A = As<float>(A_);
    args_.a_stride = channels;
    args_.D = As<float>(D_);
    args_.bias = As<float>(bias_);
    return status;
  }

  template <typename U>
  std::vector<U> Normals(size_t count, float mean, float deviation) {
    std::normal_distribution<float> normal(mean, deviation);
    std::vector<U> values(count);
    for (U& value : values) value = static_cast<U>(normal(random_));
    return values;
  }

  std::mt19937 random_{1};
  ScanShape shape_;
  kernels::SelectiveScanArgs<T> args_{};
  int64_t tokens_ = 0;
  kernels::GpuBuffer offsets_, u_, dtbc_, y_, A_, D_, bias_, scratch_;
};

template <typename T>
absl::StatusOr<std::unique_ptr<ScanInputs>> Make(
    const ScanShape& shape, const std::vector<int>& lengths) {
  auto inputs = std::make_unique<TypedScanInputs<T>>();
  const absl::Status status = inputs->Init(shape, lengths);
  if (!status.ok()) return status;
  return inputs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScanInputs>> ScanInputs::Create(
    const ScanShape& shape, std::vector<int> lengths) {
  if (lengths.empty() && shape.ragged) lengths = RaggedLengths(shape);
  switch (shape.type) {
    case ScanShape::kFloat:
      return Make<float>(shape, lengths);
    case ScanShape::kFloat16:
      return Make<kernels::Float16>(shape, lengths);
    case ScanShape::kBFloat16:
      break;
  }
  return Make<kernels::BFloat16>(shape, lengths);
}

}  // namespace sfmamba::tuning
