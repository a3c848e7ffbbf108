#ifndef SFMAMBA_KERNELS_PYTHON_CONV_INPUTS_H_
#define SFMAMBA_KERNELS_PYTHON_CONV_INPUTS_H_

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <vector>

#include "kernels/python/tensors.h"

namespace sfmamba::kernels {

// The inputs of the operator causal_conv1d. The constructor throws ValueError
// if an input is invalid. x and initial may have any layout. The other tensors
// are copied unless they are row-major.
struct ConvInputs {
  ConvInputs(const Tensor& x, const Tensor& weight, const OptionalTensor& bias,
             const OptionalTensor& seq_idx, const OptionalTensor& initial,
             bool silu, int64_t period, int64_t most_taps)
      : x(x),
        weight(weight.contiguous()),
        bias(Contiguous(bias)),
        seq_idx(Contiguous(seq_idx)),
        initial(initial),
        silu(silu),
        period(Period(period)) {
    ExpectDimensions("x", x, 3, "[batch, channels, tokens]");
    ExpectDimensions("weight", weight, 2, "[channels, taps]");
    batch = x.size(0);
    channels = x.size(1);
    tokens = x.size(2);
    taps = weight.size(1);
    WithType(x.scalar_type(), [](auto) {});
    const auto type = x.options();
    const auto real = type.dtype(ArithmeticType(x.scalar_type()));
    TORCH_CHECK_VALUE(taps >= 1 && taps <= most_taps, "weight: expected 1 to ",
                      most_taps, " taps, got ", taps);
    Expect("weight", weight, {channels, taps}, real);
    if (bias.has_value()) Expect("bias", *bias, {channels}, real);
    if (seq_idx.has_value()) {
      Expect("seq_idx", *seq_idx, {batch, tokens}, type.dtype(at::kInt));
    }
    if (initial.has_value()) {
      Expect("initial_states", *initial, {batch, channels, taps - 1}, type);
    }
  }

  Tensor x;       // [batch, channels, tokens]
  Tensor weight;  // [channels, taps]
  OptionalTensor bias;
  OptionalTensor seq_idx;  // int32 [batch, tokens]
  OptionalTensor initial;  // [batch, channels, taps-1]
  bool silu;
  int64_t period;
  int64_t batch, channels, tokens, taps;
};

// The gradients that causal_conv1d_backward returns. The kernels write the
// gradients of weight and bias separately for each image.
struct ConvGradients {
  explicit ConvGradients(const ConvInputs& inputs) {
    const auto real = inputs.weight.options();
    x = at::empty_like(inputs.x);
    weight = at::empty({inputs.batch, inputs.channels, inputs.taps}, real);
    bias = at::empty({inputs.batch, inputs.channels}, real);
    initial = inputs.initial.has_value() ? at::empty_like(*inputs.initial)
                                         : at::empty({0}, real);
  }

  // Returns the gradients of the operator's inputs, summed over images. The
  // gradient of an absent input is an empty tensor.
  std::vector<Tensor> Sums(const ConvInputs& inputs) const {
    return {x, weight.sum(0),
            inputs.bias.has_value() ? bias.sum(0)
                                    : at::empty({0}, weight.options()),
            initial};
  }

  Tensor x, initial;  // They have the shapes of the inputs.
  Tensor weight;      // [batch, channels, taps]
  Tensor bias;        // [batch, channels]
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_CONV_INPUTS_H_
