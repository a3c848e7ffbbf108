#include <torch/library.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "kernels/python/channel_scan.h"
#include "kernels/python/scan_inputs.h"

// PyTorch operators for tensors on a CPU. src/sfmamba_scan/_operators.py
// registers their gradients and, for torch.compile, the shapes of their
// results.
namespace sfmamba::kernels {
namespace {

constexpr int64_t kMostStates = 1024;

// Channels that one thread scans. They belong to one image and to one group of
// channels that share B and C.
struct ScanTask {
  int64_t image, group, range;  // The range of channels within the group.
  int64_t channel;              // The first channel.
  int channels;
};

// Returns how many ranges of at most kMaxScanChannels channels a group has.
int64_t Ranges(const ScanInputs& inputs) {
  return (inputs.channels / inputs.groups + kMaxScanChannels - 1) /
         kMaxScanChannels;
}

std::vector<ScanTask> TasksOf(const ScanInputs& inputs) {
  const int64_t each = inputs.channels / inputs.groups;
  std::vector<ScanTask> tasks;
  for (int64_t b = 0; b < inputs.batch; ++b) {
    for (int64_t g = 0; g < inputs.groups; ++g) {
      for (int64_t r = 0; r < Ranges(inputs); ++r) {
        const int64_t first = r * kMaxScanChannels;
        const auto count = std::min<int64_t>(kMaxScanChannels, each - first);
        tasks.push_back({b, g, r, g * each + first, static_cast<int>(count)});
      }
    }
  }
  return tasks;
}

// Returns all arguments except scratch, which is null.
template <typename T>
ChannelScanArgs<T> ArgsOf(const ScanInputs& inputs, const ScanTask& task) {
  using Real = Arithmetic<T>;
  const auto of_channel = [&task](const OptionalTensor& x) {
    return x.has_value() ? Data<Real>(*x) + task.channel : nullptr;
  };
  ChannelScanArgs<T> args;
  args.channels = task.channels;
  args.states = static_cast<int>(inputs.states);
  args.tokens = inputs.tokens;
  args.period = inputs.period;
  args.softplus = inputs.softplus;
  args.u = Rows<const T>(inputs.u, task.image, task.channel);
  args.delta = Rows<const T>(inputs.delta, task.image, task.channel);
  args.z = RowsOrNull<const T>(inputs.z, task.image, task.channel);
  args.B = Rows<const T>(inputs.B.select(1, task.group), task.image, 0);
  args.C = Rows<const T>(inputs.C.select(1, task.group), task.image, 0);
  args.A = Data<Real>(inputs.A) + task.channel * inputs.states;
  args.D = of_channel(inputs.D);
  args.bias = of_channel(inputs.bias);
  args.scratch = nullptr;
  return args;
}

std::tuple<Tensor, Tensor> SelectiveScan(
    const Tensor& u, const Tensor& delta, const Tensor& A, const Tensor& B,
    const Tensor& C, const OptionalTensor& D, const OptionalTensor& z,
    const OptionalTensor& bias, bool softplus, int64_t period) {
  const ScanInputs inputs(u, delta, A, B, C, D, z, bias, softplus, period,
                          kMostStates);
  const Tensor out = at::empty_like(u);
  const Tensor last =
      at::empty({inputs.batch, inputs.channels, inputs.states}, A.options());
  const std::vector<ScanTask> tasks = TasksOf(inputs);
  if (tasks.empty()) return {out, last};
  WithType(u.scalar_type(), [&](auto type) {
    using T = decltype(type);
    using Real = Arithmetic<T>;
    const int64_t size = ScanScratch(ArgsOf<T>(inputs, tasks[0]));
    ForEachTask<Real>(tasks, size, [&](const ScanTask& task, Real* scratch) {
      ChannelScanArgs<T> args = ArgsOf<T>(inputs, task);
      args.scratch = scratch;
      ChannelScan(args, ChannelScanForward<T>{
                            Rows<T>(out, task.image, task.channel),
                            Data<Real>(last) + task.image * last.stride(0) +
                                task.channel * inputs.states});
    });
  });
  return {out, last};
}

// Each task writes its own sums, which are added up afterwards. The results
// therefore do not depend on the number of threads.
std::vector<Tensor> SelectiveScanBackward(
    const Tensor& grad_out, const OptionalTensor& grad_last, const Tensor& u,
    const Tensor& delta, const Tensor& A, const Tensor& B, const Tensor& C,
    const OptionalTensor& D, const OptionalTensor& z,
    const OptionalTensor& bias, bool softplus, int64_t period) {
  const ScanInputs inputs(u, delta, A, B, C, D, z, bias, softplus, period,
                          kMostStates);
  ExpectGradients(inputs, grad_out, grad_last);
  const OptionalTensor last = Contiguous(grad_last);
  const int64_t states = inputs.states, ranges = Ranges(inputs);
  const ScanGradients gradients(inputs, ranges);
  const std::vector<ScanTask> tasks = TasksOf(inputs);
  WithType(u.scalar_type(), [&](auto type) {
    using T = decltype(type);
    using Real = Arithmetic<T>;
    if (tasks.empty()) return;
    const int64_t size = BackwardScratch(ArgsOf<T>(inputs, tasks[0]));
    ForEachTask<Real>(tasks, size, [&](const ScanTask& task, Real* scratch) {
      ChannelScanArgs<T> args = ArgsOf<T>(inputs, task);
      args.scratch = scratch;
      const int64_t row = task.image * inputs.channels + task.channel;
      const int64_t shared =
          ((task.image * inputs.groups + task.group) * ranges + task.range) *
          states * inputs.tokens;
      ChannelScanBackward<T> to;
      to.out = Rows<const T>(grad_out, task.image, task.channel);
      to.last_state =
          last.has_value() ? Data<Real>(*last) + row * states : nullptr;
      to.u = Rows<T>(gradients.u, task.image, task.channel);
      to.delta = Rows<T>(gradients.delta, task.image, task.channel);
      if (z.has_value()) {
        to.z = Rows<T>(gradients.z, task.image, task.channel);
      }
      to.A = Data<Real>(gradients.A) + row * states;
      to.D = Data<Real>(gradients.D) + row;
      to.bias = Data<Real>(gradients.bias) + row;
      to.B = Data<Real>(gradients.B) + shared;
      to.C = Data<Real>(gradients.C) + shared;
      ChannelScanGradient(args, to);
    });
  });
  return gradients.Sums(inputs, B, C);
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
  library.def("cpu_isa_error() -> str", CpuIsaError);
}

TORCH_LIBRARY_IMPL(sfmamba_scan, CPU, library) {
  library.impl("selective_scan", SelectiveScan);
  library.impl("selective_scan_backward", SelectiveScanBackward);
}

}  // namespace sfmamba::kernels
