#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "kernels/python/channel_scan.h"
#include "kernels/python/tensors.h"

// src/sfmamba_scan/_operators.py gives these operators gradients, and shapes
// for torch.compile.
namespace sfmamba::kernels {
namespace {

// Channels of one image and one group of B and C that one thread scans.
struct ScanTask {
  int64_t image, group, range;  // The range of channels within the group.
  int64_t channel;              // The first.
  int channels;
};

// The checked inputs of a scan.
class ScanInputs {
 public:
  ScanInputs(const Tensor& u, const Tensor& delta, const Tensor& A,
             const Tensor& B, const Tensor& C, const OptionalTensor& D,
             const OptionalTensor& z, const OptionalTensor& bias, bool softplus,
             int64_t period)
      : u_(u),
        delta_(delta),
        z_(z),
        A_(A.contiguous()),
        D_(Contiguous(D)),
        bias_(Contiguous(bias)),
        softplus_(softplus),
        period_(Period(period)) {
    ExpectDimensions("u", u, 3, "[batch, channels, tokens]");
    ExpectDimensions("A", A, 2, "[channels, states]");
    batch_ = u.size(0);
    channels_ = u.size(1);
    tokens_ = u.size(2);
    states_ = A.size(1);
    const auto type = u.scalar_type(), real = ArithmeticType(type);
    WithType(type, [](auto) {});
    Expect("delta", delta, u.sizes(), type);
    Expect("A", A, {channels_, states_}, real);
    TORCH_CHECK_VALUE(states_ >= 1 && states_ <= kMostStates,
                      "A: expected 1 to ", kMostStates, " states, got ",
                      states_);
    groups_ = B.dim() == 4 ? B.size(1) : 1;
    TORCH_CHECK_VALUE(groups_ >= 1 && channels_ % groups_ == 0,
                      "B: expected groups that divide ", channels_,
                      " channels, got ", groups_);
    B_ = Shared("B", B);
    C_ = Shared("C", C);
    if (D.has_value()) Expect("D", *D, {channels_}, real);
    if (z.has_value()) Expect("z", *z, u.sizes(), type);
    if (bias.has_value()) Expect("delta_bias", *bias, {channels_}, real);
  }

  int64_t batch() const { return batch_; }
  int64_t channels() const { return channels_; }
  int64_t tokens() const { return tokens_; }
  int64_t states() const { return states_; }
  int64_t groups() const { return groups_; }
  // How many ranges of channels a group has.
  int64_t ranges() const {
    return (channels_ / groups_ + kMaxScanChannels - 1) / kMaxScanChannels;
  }

  std::vector<ScanTask> Tasks() const {
    const int64_t each = channels_ / groups_;
    std::vector<ScanTask> tasks;
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t g = 0; g < groups_; ++g) {
        for (int64_t r = 0; r < ranges(); ++r) {
          const int64_t first = r * kMaxScanChannels;
          const auto count = std::min<int64_t>(kMaxScanChannels, each - first);
          tasks.push_back({b, g, r, g * each + first, static_cast<int>(count)});
        }
      }
    }
    return tasks;
  }

  // Everything but scratch.
  template <typename T>
  ChannelScanArgs<T> ArgsOf(const ScanTask& task) const {
    using Real = Arithmetic<T>;
    ChannelScanArgs<T> args;
    args.channels = task.channels;
    args.states = static_cast<int>(states_);
    args.tokens = tokens_;
    args.period = period_;
    args.softplus = softplus_;
    args.u = Rows<const T>(u_, task.image, task.channel);
    args.delta = Rows<const T>(delta_, task.image, task.channel);
    args.z = RowsOrNull<const T>(z_, task.image, task.channel);
    args.B = Rows<const T>(B_.select(1, task.group), task.image, 0);
    args.C = Rows<const T>(C_.select(1, task.group), task.image, 0);
    args.A = Data<Real>(A_) + task.channel * states_;
    args.D = D_.has_value() ? Data<Real>(*D_) + task.channel : nullptr;
    args.bias = bias_.has_value() ? Data<Real>(*bias_) + task.channel : nullptr;
    args.scratch = nullptr;
    return args;
  }

 private:
  static constexpr int64_t kMostStates = 1024;

  // Returns `tensor` as [batch, groups, states, tokens].
  Tensor Shared(const char* name, const Tensor& tensor) const {
    const auto type = u_.scalar_type();
    if (tensor.dim() == 3) {
      Expect(name, tensor, {batch_, states_, tokens_}, type);
      TORCH_CHECK_VALUE(groups_ == 1, name, ": expected ", groups_,
                        " groups as B has, got one");
      return tensor.unsqueeze(1);
    }
    Expect(name, tensor, {batch_, groups_, states_, tokens_}, type);
    return tensor;
  }

  Tensor u_, delta_;
  OptionalTensor z_;
  Tensor A_, B_, C_;
  OptionalTensor D_, bias_;
  bool softplus_;
  int64_t period_;
  int64_t batch_, channels_, tokens_, states_, groups_;
};

std::tuple<Tensor, Tensor> SelectiveScan(
    const Tensor& u, const Tensor& delta, const Tensor& A, const Tensor& B,
    const Tensor& C, const OptionalTensor& D, const OptionalTensor& z,
    const OptionalTensor& bias, bool softplus, int64_t period) {
  const ScanInputs inputs(u, delta, A, B, C, D, z, bias, softplus, period);
  const Tensor out = at::empty_like(u);
  const Tensor last = at::empty(
      {inputs.batch(), inputs.channels(), inputs.states()}, A.options());
  const std::vector<ScanTask> tasks = inputs.Tasks();
  if (tasks.empty()) return {out, last};
  WithType(u.scalar_type(), [&](auto type) {
    using T = decltype(type);
    using Real = Arithmetic<T>;
    const int64_t size = ScanScratch(inputs.ArgsOf<T>(tasks[0]));
    ForEachTask<Real>(tasks, size, [&](const ScanTask& task, Real* scratch) {
      ChannelScanArgs<T> args = inputs.ArgsOf<T>(task);
      args.scratch = scratch;
      ChannelScan(args, ChannelScanForward<T>{
                            Rows<T>(out, task.image, task.channel),
                            Data<Real>(last) + task.image * last.stride(0) +
                                task.channel * inputs.states()});
    });
  });
  return {out, last};
}

// Returns the gradients of all inputs; those of inputs that are not there are
// empty. Each task writes its own sums, which are added up afterwards: results
// do not depend on the number of threads.
std::vector<Tensor> SelectiveScanBackward(
    const Tensor& grad_out, const OptionalTensor& grad_last, const Tensor& u,
    const Tensor& delta, const Tensor& A, const Tensor& B, const Tensor& C,
    const OptionalTensor& D, const OptionalTensor& z,
    const OptionalTensor& bias, bool softplus, int64_t period) {
  const ScanInputs inputs(u, delta, A, B, C, D, z, bias, softplus, period);
  const int64_t batch = inputs.batch(), channels = inputs.channels();
  const int64_t states = inputs.states(), tokens = inputs.tokens();
  Expect("grad_out", grad_out, u.sizes(), u.scalar_type());
  if (grad_last.has_value()) {
    Expect("grad_last", *grad_last, {batch, channels, states}, A.scalar_type());
  }
  const OptionalTensor last = Contiguous(grad_last);
  const auto real = A.options();
  const Tensor du = at::empty_like(u), ddelta = at::empty_like(delta);
  const Tensor dz = z.has_value() ? at::empty_like(*z) : at::empty({0}, real);
  const Tensor dA = at::empty({batch, channels, states}, real);
  const Tensor dD = at::empty({batch, channels}, real);
  const Tensor dbias = at::empty({batch, channels}, real);
  const int64_t groups = inputs.groups(), ranges = inputs.ranges();
  const Tensor dB = at::empty({batch, groups, ranges, states, tokens}, real);
  const Tensor dC = at::empty_like(dB);
  const std::vector<ScanTask> tasks = inputs.Tasks();
  WithType(u.scalar_type(), [&](auto type) {
    using T = decltype(type);
    using Real = Arithmetic<T>;
    if (tasks.empty()) return;
    const int64_t size = BackwardScratch(inputs.ArgsOf<T>(tasks[0]));
    ForEachTask<Real>(tasks, size, [&](const ScanTask& task, Real* scratch) {
      ChannelScanArgs<T> args = inputs.ArgsOf<T>(task);
      args.scratch = scratch;
      const int64_t row = task.image * channels + task.channel;
      const int64_t shared =
          ((task.image * groups + task.group) * ranges + task.range) * states *
          tokens;
      ChannelScanBackward<T> to;
      to.out = Rows<const T>(grad_out, task.image, task.channel);
      to.last_state =
          last.has_value() ? Data<Real>(*last) + row * states : nullptr;
      to.u = Rows<T>(du, task.image, task.channel);
      to.delta = Rows<T>(ddelta, task.image, task.channel);
      if (z.has_value()) to.z = Rows<T>(dz, task.image, task.channel);
      to.A = Data<Real>(dA) + row * states;
      to.D = Data<Real>(dD) + row;
      to.bias = Data<Real>(dbias) + row;
      to.B = Data<Real>(dB) + shared;
      to.C = Data<Real>(dC) + shared;
      ChannelScanGradient(args, to);
    });
  });
  const auto shared = [&](const Tensor& sums, const Tensor& like) {
    return sums.sum(2).view(like.sizes()).to(like.scalar_type());
  };
  return {du,
          ddelta,
          dA.sum(0),
          shared(dB, B),
          shared(dC, C),
          D.has_value() ? dD.sum(0) : at::empty({0}, real),
          dz,
          bias.has_value() ? dbias.sum(0) : at::empty({0}, real)};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sfmamba_scan, library) {
  library.def(
      "selective_scan(Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C, "
      "Tensor? D, Tensor? z, Tensor? delta_bias, bool delta_softplus, "
      "int period) -> (Tensor, Tensor)");
  library.def(
      "selective_scan_backward(Tensor grad_out, Tensor? grad_last, Tensor u, "
      "Tensor delta, Tensor A, Tensor B, Tensor C, Tensor? D, Tensor? z, "
      "Tensor? delta_bias, bool delta_softplus, int period) -> Tensor[]");
}

TORCH_LIBRARY_IMPL(sfmamba_scan, CPU, library) {
  library.impl("selective_scan", SelectiveScan);
  library.impl("selective_scan_backward", SelectiveScanBackward);
}

}  // namespace sfmamba::kernels
