#include "model/backbones/ssm_branch.h"

#include "ATen/TensorOperators.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/flip.h"
#include "absl/strings/str_cat.h"
#include "model/layers/weight_transforms.h"
#include "model/ops/plain_ops.h"

namespace sfmamba::backbones {
namespace {

// Returns the parameters of channels [begin, begin + count).
ops::Scan Slice(const ops::Scan& scan, int begin, int count) {
  return {scan.A.narrow(1, begin, count).contiguous(),
          scan.D.narrow(0, begin, count), scan.bias.narrow(0, begin, count),
          scan.chooser};
}

// Returns whether composing both projections, which saves a launch, takes at
// most four times the operations. It replaces 2 * rank * channels
// multiplications by channels^2.
bool IsWorthComposing(const SsmBranch::Shape& shape) {
  const int64_t channels = shape.conv.channels, rest = 2 * shape.states;
  return channels + rest <= 4 * (2 * shape.rank + rest);
}

at::Tensor EmptyLike(const at::Tensor& x) {
  return at::empty(x.sizes(), x.options());  // Contiguous even if x is not.
}

}  // namespace

at::Tensor Reversed(const at::Tensor& x, int64_t length) {
  return x.reshape({-1, length, x.size(2)})
      .flip({1})
      .contiguous()
      .view(x.sizes());
}

SsmBranch::SsmBranch(const weights::StateDict::Scope& scope,
                     absl::string_view conv, absl::string_view suffix,
                     const Shape& shape, const layers::LayerOptions& options)
    : fuse_(options.fuse),
      shape_(shape),
      conv_(scope.Sub(absl::StrCat(conv, suffix)), shape.conv, options) {
  const int channels = shape.conv.channels;
  const layers::Weights x_proj =
      layers::Linear::Take(scope.Sub(absl::StrCat("x_proj", suffix)), channels,
                           shape.rank + 2 * shape.states, /*bias=*/false);
  const layers::Weights dt_proj =
      layers::Linear::Take(scope.Sub(absl::StrCat("dt_proj", suffix)),
                           shape.rank, channels, /*bias=*/false);
  if (ops::OnDevice(x_proj.weight) && IsWorthComposing(shape)) {
    x_proj_.emplace(layers::ComposeProjections(x_proj, dt_proj), at::Tensor(),
                    options);
  } else {
    x_proj_.emplace(x_proj, at::Tensor(), options);
    dt_proj_.emplace(dt_proj, at::Tensor(), options);
  }
  const ops::Scan scan = {
      layers::DecayRates(scope.Take(absl::StrCat("A", suffix, "_log"),
                                    {channels, shape.states})),
      scope.Take(absl::StrCat("D", suffix), {channels}),
      scope.Take(absl::StrCat("dt_proj", suffix, ".bias"), {channels}) *
          shape.dt_bias_scale,
      options.chooser};
  const int forward = channels - shape.reversed_scans;
  scan_ = Slice(scan, 0, forward);
  reversed_scan_ = Slice(scan, forward, shape.reversed_scans);
}

void SsmBranch::Forward(const at::Tensor& x, int64_t length,
                        at::Tensor y) const {
  const at::Tensor u = EmptyLike(x);
  conv_.Forward(x, length, u);
  ForwardFrom(u, length, y);
}

SsmBranch::Inputs SsmBranch::Project(const at::Tensor& u) const {
  const at::Tensor p = x_proj_->Forward(u);  // (dt | B | C)
  const int64_t states = shape_.states, first = p.size(2) - 2 * states;
  const at::Tensor dt = p.narrow(2, 0, first);
  return {u, dt_proj_.has_value() ? dt_proj_->Forward(dt) : dt,
          p.narrow(2, first, states), p.narrow(2, first + states, states)};
}

void SsmBranch::ForwardFrom(const at::Tensor& u, int64_t length,
                            at::Tensor y) const {
  const auto [same, dt, B, C] = Project(u);
  const int reversed = shape_.reversed_scans;
  const int forward = u.size(2) - reversed;
  RunScan(scan_, {u.narrow(2, 0, forward), dt.narrow(2, 0, forward), B, C},
          length, y.narrow(2, 0, forward));
  if (reversed == 0) return;
  const Inputs inputs = {Reversed(u.narrow(2, forward, reversed), length),
                         Reversed(dt.narrow(2, forward, reversed), length),
                         Reversed(B, length), Reversed(C, length)};
  const at::Tensor backward = EmptyLike(inputs.u);
  RunScan(reversed_scan_, inputs, length, backward);
  y.narrow(2, forward, reversed).copy_(Reversed(backward, length));
}

void SsmBranch::AddBackward(const at::Tensor& x, int64_t length,
                            at::Tensor y) const {
  const at::Tensor backward = EmptyLike(x);
  Forward(Reversed(x, length), length, backward);
  y.add_(Reversed(backward, length));
}

void SsmBranch::RunScan(const ops::Scan& scan, const Inputs& inputs,
                        int64_t length, at::Tensor y) const {
  const auto& [u, dt, B, C] = inputs;
  if (!fuse_) {
    y.copy_(plain::SelectiveScan(scan, u, dt, B, C, length));
    return;
  }
  const auto rows = [](const at::Tensor& x) { return x.view({-1, x.size(2)}); };
  ops::SelectiveScan(scan, rows(u), rows(dt), rows(B), rows(C), length,
                     u.size(0), rows(y));
}

}  // namespace sfmamba::backbones
