#include "model/ops/cpu/onednn.h"

#include "ATen/core/List.h"
#include "ATen/core/dispatch/Dispatcher.h"

namespace sfmamba::ops {
namespace {

using Scalars = c10::List<std::optional<c10::Scalar>>;
using Text = std::optional<c10::string_view>;
using Bias = std::optional<at::Tensor>;

template <typename Signature>
c10::TypedOperatorHandle<Signature> Find(const char* name,
                                         const char* overload) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, overload)
      .typed<Signature>();
}

Bias Optional(const at::Tensor& bias) {
  return bias.defined() ? Bias(bias) : std::nullopt;
}

}  // namespace

at::Tensor PackConvolutionWeight(const at::Tensor& weight, int stride,
                                 int padding, int groups,
                                 at::IntArrayRef input_shape) {
  // libtorch has no header for these operators. Its dispatcher checks that the
  // signature is right.
  static const auto op =
      Find<at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef,
                      at::IntArrayRef, int64_t, at::OptionalIntArrayRef)>(
          "mkldnn::_reorder_convolution_weight", "");
  return op.call(weight, {padding, padding}, {stride, stride}, {1, 1}, groups,
                 input_shape);
}

at::Tensor PackedConvolution(const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias, int stride, int padding,
                             int groups) {
  static const auto op =
      Find<at::Tensor(const at::Tensor&, const at::Tensor&, const Bias&,
                      at::IntArrayRef, at::IntArrayRef, at::IntArrayRef,
                      int64_t, c10::string_view, Scalars, Text)>(
          "mkldnn::_convolution_pointwise", "");
  return op.call(x, weight, Optional(bias), {padding, padding},
                 {stride, stride}, {1, 1}, groups, "none", Scalars(), Text());
}

void PackedConvolutionAdd(at::Tensor& residual, const at::Tensor& x,
                          const at::Tensor& weight, const at::Tensor& bias,
                          int padding) {
  static const auto op = Find<at::Tensor&(
      at::Tensor&, const at::Tensor&, const at::Tensor&, const Bias&,
      at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t,
      c10::string_view, std::optional<c10::Scalar>, Text, Scalars, Text)>(
      "mkldnn::_convolution_pointwise_", "binary");
  op.call(residual, x, weight, Optional(bias), {padding, padding}, {1, 1},
          {1, 1}, 1, "add", std::optional<c10::Scalar>(1.0), Text(), Scalars(),
          Text());
}

}  // namespace sfmamba::ops
