#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

#include "kernels/python/causal_conv1d.h"
#include "kernels/python/tensors.h"

// src/sfmamba_scan/_operators.py gives these operators gradients, and shapes
// for torch.compile.
namespace sfmamba::kernels {
namespace {

// Channels of one image that one thread convolves.
struct ConvTask {
  int64_t image, channel;
  int channels;
};

// The checked inputs of a convolution.
class ConvInputs {
 public:
  ConvInputs(const Tensor& x, const Tensor& weight, const OptionalTensor& bias,
             const OptionalTensor& seq_idx, const OptionalTensor& initial,
             bool silu, int64_t period)
      : x_(x),
        weight_(weight.contiguous()),
        bias_(Contiguous(bias)),
        seq_idx_(Contiguous(seq_idx)),
        initial_(initial),
        silu_(silu),
        period_(Period(period)) {
    ExpectDimensions("x", x, 3, "[batch, channels, tokens]");
    ExpectDimensions("weight", weight, 2, "[channels, taps]");
    const auto type = x.scalar_type(), real = ArithmeticType(type);
    WithType(type, [](auto) {});
    const int64_t taps = weight.size(1);
    TORCH_CHECK_VALUE(taps >= 1 && taps <= kMaxTaps, "weight: expected 1 to ",
                      kMaxTaps, " taps, got ", taps);
    Expect("weight", weight, {x.size(1), taps}, real);
    if (bias.has_value()) Expect("bias", *bias, {x.size(1)}, real);
    if (seq_idx.has_value()) {
      Expect("seq_idx", *seq_idx, {x.size(0), x.size(2)}, at::kInt);
    }
    if (initial.has_value()) {
      Expect("initial_states", *initial, {x.size(0), x.size(1), taps - 1},
             type);
    }
  }

  std::vector<ConvTask> Tasks() const {
    std::vector<ConvTask> tasks;
    for (int64_t b = 0; b < x_.size(0); ++b) {
      for (int64_t first = 0; first < x_.size(1); first += kChannels) {
        const int64_t count = std::min(kChannels, x_.size(1) - first);
        tasks.push_back({b, first, static_cast<int>(count)});
      }
    }
    return tasks;
  }

  template <typename T>
  CausalConv1dArgs<T> ArgsOf(const ConvTask& task) const {
    using Real = Arithmetic<T>;
    const int64_t taps = weight_.size(1);
    CausalConv1dArgs<T> args;
    args.channels = task.channels;
    args.taps = static_cast<int>(taps);
    args.tokens = x_.size(2);
    args.period = period_;
    args.silu = silu_;
    args.x = Rows<const T>(x_, task.image, task.channel);
    args.initial = RowsOrNull<const T>(initial_, task.image, task.channel);
    args.run = seq_idx_.has_value()
                   ? Data<int32_t>(*seq_idx_) + task.image * x_.size(2)
                   : nullptr;
    args.weight = Data<Real>(weight_) + task.channel * taps;
    args.bias = bias_.has_value() ? Data<Real>(*bias_) + task.channel : nullptr;
    return args;
  }

 private:
  static constexpr int64_t kChannels = 64;

  Tensor x_, weight_;
  OptionalTensor bias_, seq_idx_, initial_;
  bool silu_;
  int64_t period_;
};

Tensor Conv1d(const Tensor& x, const Tensor& weight, const OptionalTensor& bias,
              const OptionalTensor& seq_idx, const OptionalTensor& initial,
              bool silu, int64_t period) {
  const ConvInputs inputs(x, weight, bias, seq_idx, initial, silu, period);
  const Tensor out = at::empty_like(x);
  WithType(x.scalar_type(), [&](auto type) {
    using T = decltype(type);
    ForEachTask<char>(inputs.Tasks(), 0, [&](const ConvTask& task, char*) {
      CausalConv1d(inputs.ArgsOf<T>(task),
                   Rows<T>(out, task.image, task.channel));
    });
  });
  return out;
}

// Returns the gradients of x, weight, bias and initial_states; those of inputs
// that are not there are empty.
std::vector<Tensor> Conv1dBackward(const Tensor& grad_out, const Tensor& x,
                                   const Tensor& weight,
                                   const OptionalTensor& bias,
                                   const OptionalTensor& seq_idx,
                                   const OptionalTensor& initial, bool silu,
                                   int64_t period) {
  const ConvInputs inputs(x, weight, bias, seq_idx, initial, silu, period);
  Expect("grad_out", grad_out, x.sizes(), x.scalar_type());
  const auto real = weight.options();
  const int64_t channels = x.size(1), taps = weight.size(1);
  const Tensor dx = at::empty_like(x);
  const Tensor dweight = at::empty({x.size(0), channels, taps}, real);
  const Tensor dbias = at::empty({x.size(0), channels}, real);
  const Tensor dinitial =
      initial.has_value() ? at::empty_like(*initial) : at::empty({0}, real);
  WithType(x.scalar_type(), [&](auto type) {
    using T = decltype(type);
    using Real = Arithmetic<T>;
    ForEachTask<char>(inputs.Tasks(), 0, [&](const ConvTask& task, char*) {
      const int64_t row = task.image * channels + task.channel;
      CausalConv1dBackward<T> to;
      to.out = Rows<const T>(grad_out, task.image, task.channel);
      to.x = Rows<T>(dx, task.image, task.channel);
      if (initial.has_value()) {
        to.initial = Rows<T>(dinitial, task.image, task.channel);
      }
      to.weight = Data<Real>(dweight) + row * taps;
      to.bias = Data<Real>(dbias) + row;
      CausalConv1dGradient(inputs.ArgsOf<T>(task), to);
    });
  });
  return {dx, dweight.sum(0),
          bias.has_value() ? dbias.sum(0) : at::empty({0}, real), dinitial};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sfmamba_scan, library) {
  library.def(
      "causal_conv1d(Tensor x, Tensor weight, Tensor? bias, Tensor? seq_idx, "
      "Tensor? initial_states, bool silu, int period) -> Tensor");
  library.def(
      "causal_conv1d_backward(Tensor grad_out, Tensor x, Tensor weight, "
      "Tensor? bias, Tensor? seq_idx, Tensor? initial_states, bool silu, "
      "int period) -> Tensor[]");
}

TORCH_LIBRARY_IMPL(sfmamba_scan, CPU, library) {
  library.impl("causal_conv1d", Conv1d);
  library.impl("causal_conv1d_backward", Conv1dBackward);
}

}  // namespace sfmamba::kernels
