#include <torch/library.h>

#include <algorithm>
#include <vector>

#include "kernels/python/causal_conv1d.h"
#include "kernels/python/conv_inputs.h"

// PyTorch operators for tensors on a CPU. src/sfmamba_scan/_operators.py
// registers their gradients and, for torch.compile, the shapes of their
// results.
namespace sfmamba::kernels {
namespace {

// Channels of one image that one thread convolves.
struct ConvTask {
  int64_t image, channel;
  int channels;
};

std::vector<ConvTask> TasksOf(const ConvInputs& inputs) {
  constexpr int64_t kChannels = 64;
  std::vector<ConvTask> tasks;
  for (int64_t b = 0; b < inputs.batch; ++b) {
    for (int64_t first = 0; first < inputs.channels; first += kChannels) {
      const int64_t count = std::min(kChannels, inputs.channels - first);
      tasks.push_back({b, first, static_cast<int>(count)});
    }
  }
  return tasks;
}

template <typename T>
CausalConv1dArgs<T> ArgsOf(const ConvInputs& inputs, const ConvTask& task) {
  using Real = Arithmetic<T>;
  CausalConv1dArgs<T> args;
  args.channels = task.channels;
  args.taps = static_cast<int>(inputs.taps);
  args.tokens = inputs.tokens;
  args.period = inputs.period;
  args.silu = inputs.silu;
  args.x = Rows<const T>(inputs.x, task.image, task.channel);
  args.initial = RowsOrNull<const T>(inputs.initial, task.image, task.channel);
  args.run = inputs.seq_idx.has_value()
                 ? Data<int32_t>(*inputs.seq_idx) + task.image * inputs.tokens
                 : nullptr;
  args.weight = Data<Real>(inputs.weight) + task.channel * inputs.taps;
  args.bias = inputs.bias.has_value() ? Data<Real>(*inputs.bias) + task.channel
                                      : nullptr;
  return args;
}

Tensor Conv1d(const Tensor& x, const Tensor& weight, const OptionalTensor& bias,
              const OptionalTensor& seq_idx, const OptionalTensor& initial,
              bool silu, int64_t period) {
  const ConvInputs inputs(x, weight, bias, seq_idx, initial, silu, period,
                          kMaxTaps);
  const Tensor out = at::empty_like(x);
  WithType(x.scalar_type(), [&](auto type) {
    using T = decltype(type);
    ForEachTask<char>(TasksOf(inputs), 0, [&](const ConvTask& task, char*) {
      CausalConv1d(ArgsOf<T>(inputs, task),
                   Rows<T>(out, task.image, task.channel));
    });
  });
  return out;
}

std::vector<Tensor> Conv1dBackward(const Tensor& grad_out, const Tensor& x,
                                   const Tensor& weight,
                                   const OptionalTensor& bias,
                                   const OptionalTensor& seq_idx,
                                   const OptionalTensor& initial, bool silu,
                                   int64_t period) {
  const ConvInputs inputs(x, weight, bias, seq_idx, initial, silu, period,
                          kMaxTaps);
  Expect("grad_out", grad_out, x.sizes(), x.options());
  const ConvGradients gradients(inputs);
  WithType(x.scalar_type(), [&](auto type) {
    using T = decltype(type);
    using Real = Arithmetic<T>;
    ForEachTask<char>(TasksOf(inputs), 0, [&](const ConvTask& task, char*) {
      const int64_t row = task.image * inputs.channels + task.channel;
      CausalConv1dBackward<T> to;
      to.out = Rows<const T>(grad_out, task.image, task.channel);
      to.x = Rows<T>(gradients.x, task.image, task.channel);
      if (initial.has_value()) {
        to.initial = Rows<T>(gradients.initial, task.image, task.channel);
      }
      to.weight = Data<Real>(gradients.weight) + row * inputs.taps;
      to.bias = Data<Real>(gradients.bias) + row;
      CausalConv1dGradient(ArgsOf<T>(inputs, task), to);
    });
  });
  return gradients.Sums(inputs);
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
