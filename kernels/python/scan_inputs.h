#ifndef SFMAMBA_KERNELS_PYTHON_SCAN_INPUTS_H_
#define SFMAMBA_KERNELS_PYTHON_SCAN_INPUTS_H_

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <vector>

#include "kernels/python/tensors.h"

namespace sfmamba::kernels {

// The inputs of the operator selective_scan. The constructor throws ValueError
// if an input is invalid. u, delta, z, B and C may have any layout. The other
// tensors are copied unless they are row-major.
struct ScanInputs {
  ScanInputs(const Tensor& u, const Tensor& delta, const Tensor& A,
             const Tensor& B, const Tensor& C, const OptionalTensor& D,
             const OptionalTensor& z, const OptionalTensor& bias, bool softplus,
             int64_t period, int64_t most_states)
      : u(u),
        delta(delta),
        z(z),
        A(A.contiguous()),
        D(Contiguous(D)),
        bias(Contiguous(bias)),
        softplus(softplus),
        period(Period(period)) {
    ExpectDimensions("u", u, 3, "[batch, channels, tokens]");
    ExpectDimensions("A", A, 2, "[channels, states]");
    batch = u.size(0);
    channels = u.size(1);
    tokens = u.size(2);
    states = A.size(1);
    WithType(u.scalar_type(), [](auto) {});
    const auto type = u.options();
    const auto real = type.dtype(ArithmeticType(u.scalar_type()));
    Expect("delta", delta, u.sizes(), type);
    Expect("A", A, {channels, states}, real);
    TORCH_CHECK_VALUE(states >= 1 && states <= most_states, "A: expected 1 to ",
                      most_states, " states, got ", states);
    groups = B.dim() == 4 ? B.size(1) : 1;
    TORCH_CHECK_VALUE(groups >= 1 && channels % groups == 0,
                      "B: expected groups that divide ", channels,
                      " channels, got ", groups);
    this->B = Shared("B", B);
    this->C = Shared("C", C);
    if (D.has_value()) Expect("D", *D, {channels}, real);
    if (z.has_value()) Expect("z", *z, u.sizes(), type);
    if (bias.has_value()) Expect("delta_bias", *bias, {channels}, real);
  }

  Tensor u, delta;   // [batch, channels, tokens]
  OptionalTensor z;  // [batch, channels, tokens]
  Tensor A;          // [channels, states]
  Tensor B, C;       // [batch, groups, states, tokens]
  OptionalTensor D, bias;
  bool softplus;
  int64_t period;
  int64_t batch, channels, tokens, states, groups;

 private:
  Tensor Shared(const char* name, const Tensor& tensor) const {
    const auto type = u.options();
    if (tensor.dim() == 3) {
      Expect(name, tensor, {batch, states, tokens}, type);
      TORCH_CHECK_VALUE(groups == 1, name, ": expected ", groups,
                        " groups as B has, got one");
      return tensor.unsqueeze(1);
    }
    Expect(name, tensor, {batch, groups, states, tokens}, type);
    return tensor;
  }
};

inline void ExpectGradients(const ScanInputs& inputs, const Tensor& of_out,
                            const OptionalTensor& of_last_state) {
  Expect("grad_out", of_out, inputs.u.sizes(), inputs.u.options());
  if (of_last_state.has_value()) {
    Expect("grad_last", *of_last_state,
           {inputs.batch, inputs.channels, inputs.states}, inputs.A.options());
  }
}

// The gradients that selective_scan_backward returns. The kernels write the
// gradients of A, D and bias separately for each image. They write the
// gradients of B and C separately for each of the `ranges` ranges of a group's
// channels.
struct ScanGradients {
  ScanGradients(const ScanInputs& inputs, int64_t ranges) {
    const auto real = inputs.A.options();
    const int64_t batch = inputs.batch, channels = inputs.channels;
    u = at::empty_like(inputs.u);
    delta = at::empty_like(inputs.delta);
    z = inputs.z.has_value() ? at::empty_like(*inputs.z) : at::empty({0}, real);
    A = at::empty({batch, channels, inputs.states}, real);
    D = at::empty({batch, channels}, real);
    bias = at::empty({batch, channels}, real);
    B = at::empty({batch, inputs.groups, ranges, inputs.states, inputs.tokens},
                  real);
    C = at::empty_like(B);
  }

  // Returns the gradients of all inputs of the operator, in the operator's
  // order and with the shapes of the inputs. Sums the gradients of A, D and
  // bias over the images, and the gradients of B and C over the ranges. `of_B`
  // and `of_C` are the inputs B and C as they were passed to the operator. The
  // gradient of an absent input is a tensor with 0 elements.
  std::vector<Tensor> Sums(const ScanInputs& inputs, const Tensor& of_B,
                           const Tensor& of_C) const {
    const auto shared = [](const Tensor& sums, const Tensor& like) {
      return sums.sum(2).view(like.sizes()).to(like.scalar_type());
    };
    const Tensor none = at::empty({0}, inputs.A.options());
    return {u,
            delta,
            A.sum(0),
            shared(B, of_B),
            shared(C, of_C),
            inputs.D.has_value() ? D.sum(0) : none,
            z,
            inputs.bias.has_value() ? bias.sum(0) : none};
  }

  Tensor u, delta, z;  // They have the shapes of the inputs.
  Tensor A;            // [batch, channels, states]
  Tensor D, bias;      // [batch, channels]
  Tensor B, C;         // [batch, groups, ranges, states, tokens]
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_SCAN_INPUTS_H_
