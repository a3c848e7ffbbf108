#include "tests/model/recording_ops.h"

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "ATen/ops/empty.h"
#include "ATen/record_function.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "c10/core/InferenceMode.h"
#include "model/backbones/backbone.h"
#include "model/engine/network.h"
#include "model/ops/compute_type.h"
#include "model/ops/cuda/cuda_implementation.h"
#include "model/ops/device_ops.h"
#include "model/ops/image_batch.h"
#include "model/tuning/scan_plan_chooser.h"

namespace sfmamba::model {
namespace {

LaunchRecorder* recording = nullptr;

double Bytes(const at::Tensor& x) {
  return x.defined() ? double(x.numel()) * x.element_size() : 0;
}

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "the launch plan does not know %s\n", what.c_str());
  std::abort();
}

void Record(Launch launch) { recording->launches.push_back(std::move(launch)); }

void RecordPass(const char* group, double bytes) {
  Launch launch;
  launch.group = group;
  launch.bytes = bytes;
  Record(launch);
}

double BytesOf(const ops::PixelBatch& pixels) {
  double bytes = 0;
  for (const ops::ImagePixels& image : pixels.images) {
    bytes += 3.0 * image.height * image.width;
  }
  return bytes;
}

// ---- Kernels of this project and of libraries ----

class RecordingOps : public ops::DeviceOps {
 public:
  void LayerNorm(at::Tensor& x, const at::Tensor& add, const at::Tensor&,
                 const at::Tensor&, float, int64_t, bool,
                 const at::Tensor& y) const override {
    const double written = add.defined() ? Bytes(x) + Bytes(add) : 0;
    RecordPass("LayerNorm with residual", Bytes(x) + Bytes(y) + written);
  }
  void LayerNormKeeping(const at::Tensor& x, const at::Tensor& add,
                        const at::Tensor&, const at::Tensor&, float, int64_t,
                        const at::Tensor& kept,
                        const at::Tensor& y) const override {
    RecordPass("LayerNorm with residual",
               Bytes(x) + Bytes(add) + Bytes(kept) + Bytes(y));
  }
  void DepthwiseConvSilu(absl::Span<const ops::ShortConv> convs, int,
                         int64_t) const override {
    double bytes = 0;
    for (const ops::ShortConv& conv : convs) {
      bytes += Bytes(conv.x) + Bytes(conv.y);
    }
    RecordPass("short convolution", bytes);
  }
  void SelectiveScan(const ops::Scan& scan, const at::Tensor& u,
                     const at::Tensor& dt, const at::Tensor& B,
                     const at::Tensor& C, int64_t length, int64_t,
                     const at::Tensor& y) const override {
    Launch launch;
    launch.kind = LaunchKind::kScan;
    launch.scan.type = ops::ScanType(u.scalar_type());
    launch.scan.channels = u.size(1);
    launch.scan.states = scan.A.size(0);
    launch.scan.sequences = u.size(0) / length;
    launch.scan.length = length;
    launch.group = "selective scan";
    launch.bytes = Bytes(u) + Bytes(dt) + Bytes(B) + Bytes(C) + Bytes(y);
    launch.specials = double(u.numel()) * (2 + scan.A.size(0));
    Record(launch);
  }
  void CrossScan(const ops::Scan&, const at::Tensor& u, const at::Tensor& dt,
                 const at::Tensor& B, const at::Tensor& C,
                 const at::Tensor& y) const override {
    RecordPass("cross scan",
               4 * Bytes(u) + Bytes(dt) + Bytes(B) + Bytes(C) + Bytes(y));
  }
  void Activate(const at::Tensor& x, const at::Tensor&,
                kernels::CudaActivation activation) const override {
    const bool of_mlp = activation == kernels::CudaActivation::kGeluErf;
    RecordPass(of_mlp ? "GELU of the MLPs" : "after convolutions",
               2 * Bytes(x));
  }
  void AddBiased(const at::Tensor& x, const at::Tensor&,
                 const at::Tensor&) const override {
    RecordPass("after convolutions", 3 * Bytes(x));
  }
  void FillEndsWithMean(const at::Tensor& x) const override {
    RecordPass("windows, means, tokens", Bytes(x));
  }
  void ConvolveDepthwise(const at::Tensor& x,
                         const ops::DepthwiseConvWeights& weights,
                         const at::Tensor& y) const override {
    Launch launch;
    launch.group = "depthwise convolutions";
    launch.flops =
        2.0 * y.numel() * weights.weight.size(0) * weights.weight.size(1);
    launch.bytes = Bytes(x) + Bytes(weights.weight) + Bytes(y);
    Record(launch);
  }
  void NormalizeImages(const ops::PixelBatch& pixels,
                       const at::Tensor& y) const override {
    RecordPass("stem", BytesOf(pixels) + Bytes(y));
  }
  void ConvolvePixels(const ops::PixelBatch& pixels,
                      const ops::PixelConvWeights& weights,
                      const at::Tensor& y) const override {
    Launch launch;
    launch.kind = LaunchKind::kStem;
    launch.group = "stem";
    launch.flops = 2.0 * y.numel() * weights.weight.size(0);
    launch.bytes = BytesOf(pixels) + Bytes(weights.weight) + Bytes(y);
    Record(launch);
  }
  void WindowPartition(const at::Tensor& map, const ops::WindowGrid&,
                       ops::WindowEnds,
                       const at::Tensor& windows) const override {
    RecordPass("windows, means, tokens", Bytes(map) + Bytes(windows));
  }
  void WindowReverse(const at::Tensor& windows, const ops::WindowGrid&,
                     const at::Tensor& map) const override {
    RecordPass("windows, means, tokens", Bytes(map) + Bytes(windows));
  }

  at::Tensor Linear(const at::Tensor& x, const at::Tensor& W,
                    const at::Tensor&) const override {
    const at::Tensor y = at::empty({x.size(0), W.size(0)}, x.options());
    RecordProduct(x, W, Bytes(y));
    return y;
  }
  at::Tensor LinearGeluTanh(const at::Tensor& x, const at::Tensor& W,
                            const at::Tensor& bias) const override {
    return Linear(x, W, bias);
  }
  void AddLinear(const at::Tensor& x, const at::Tensor& W,
                 const at::Tensor& y) const override {
    RecordProduct(x, W, 2 * Bytes(y));
  }
  at::Tensor Convolve(const at::Tensor& x,
                      const ops::ConvWeights& weights) const override {
    const at::Tensor& weight = weights.weight;
    const auto size = [&](int64_t side) {
      return (side + 2 * weights.padding - weight.size(2)) / weights.stride + 1;
    };
    const at::Tensor y =
        at::empty({x.size(0), weight.size(0), size(x.size(2)), size(x.size(3))},
                  x.options().memory_format(at::MemoryFormat::ChannelsLast));
    // A 1x1 convolution is a matrix product, pixels by channels.
    const bool product = weight.size(2) == 1;
    Launch launch;
    launch.kind = product ? LaunchKind::kGemm : LaunchKind::kConvolution;
    launch.group = product ? "products" : "convolutions";
    launch.flops = 2.0 * y.numel() * weight.numel() / weight.size(0);
    launch.bytes = Bytes(x) + Bytes(weight) + Bytes(y);
    launch.channels = weight.size(1);
    Record(launch);
    return y;
  }
  at::Tensor Attention(const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v) const override {
    // In memory, the heads of a token lie side by side, like in the result of
    // libraries' kernels.
    const at::Tensor y =
        at::empty({q.size(0), q.size(2), q.size(1), q.size(3)}, q.options())
            .transpose(1, 2);
    Launch launch;
    launch.kind = LaunchKind::kAttention;
    launch.group = "attention";
    launch.flops = 4.0 * q.numel() * k.size(2);
    launch.bytes = Bytes(q) + Bytes(k) + Bytes(v) + Bytes(y);
    Record(launch);
    return y;
  }

  at::Tensor RoiAlign(const std::vector<at::Tensor>&, const std::vector<int>&,
                      const at::Tensor&, int, float) const override {
    Die("RoIAlign");
  }
  at::Tensor Nms(const at::Tensor&, const at::Tensor&, const at::Tensor&, float,
                 int64_t) const override {
    Die("NMS");
  }
  void SegmentationArgmax(const at::Tensor&, int, int, bool,
                          Segmentation*) const override {
    Die("class maps");
  }

 private:
  static void RecordProduct(const at::Tensor& x, const at::Tensor& W,
                            double result_bytes) {
    Launch launch;
    launch.kind = LaunchKind::kGemm;
    launch.group = "products";
    launch.flops = 2.0 * x.numel() * W.size(0);
    launch.bytes = Bytes(x) + Bytes(W) + result_bytes;
    Record(launch);
  }
};

// ---- libtorch's own operators ----

// Returns the operators that launch a kernel, each with its group.
const std::map<std::string, const char*>& Kernels() {
  static const auto& kernels = *new std::map<std::string, const char*>{
      {"copy_", "windows, means, tokens"},
      {"add_", "after convolutions"},
      {"relu_", "after convolutions"},
      {"clamp_", "after convolutions"},
      {"mean", "head"},
      {"addcmul", "head"},
      {"cat", "head"},
  };
  return kernels;
}

// Returns the operators that launch nothing, and those whose parts are recorded
// separately.
const std::set<std::string>& Free() {
  static const auto& free =
      *new std::set<std::string>{"_to_copy",   "_unsafe_view",
                                 "as_strided", "clone",
                                 "contiguous", "empty",
                                 "empty_like", "empty_strided",
                                 "expand",     "narrow",
                                 "permute",    "repeat_interleave",
                                 "reshape",    "select",
                                 "slice",      "t",
                                 "to",         "transpose",
                                 "unsqueeze",  "view",
                                 "detach",     "is_floating_point"};
  return free;
}

thread_local int inside_kernel = 0;

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& call) {
  if (recording == nullptr) return nullptr;
  const std::string name(absl::StripPrefix(call.name(), "aten::"));
  const auto kernel = Kernels().find(name);
  if (kernel == Kernels().end()) {
    if (inside_kernel == 0 && Free().count(name) == 0) Die(name);
    return nullptr;
  }
  if (inside_kernel++ > 0) return nullptr;
  // Adds the bytes of all operands. The operators add_, relu_ and clamp_ also
  // write their first operand, so its bytes are added twice. copy_ only writes
  // its first operand. The results of the other operators are not counted.
  double bytes = 0, first = -1;
  const auto add = [&](const at::Tensor& x) {
    if (first < 0) first = Bytes(x);
    bytes += Bytes(x);
  };
  for (const c10::IValue& input : call.inputs()) {
    if (input.isTensor()) add(input.toTensor());
    if (input.isTensorList()) {
      for (const at::Tensor& x : input.toTensorVector()) add(x);
    }
  }
  if (name == "add_" || name == "relu_" || name == "clamp_") bytes += first;
  RecordPass(kernel->second, bytes);
  return nullptr;
}

void OnEnd(const at::RecordFunction& call, at::ObserverContext*) {
  if (recording == nullptr) return;
  const std::string name(absl::StripPrefix(call.name(), "aten::"));
  if (Kernels().count(name) > 0) --inside_kernel;
}

at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;

}  // namespace

LaunchRecorder::LaunchRecorder(bool operators) {
  recording = this;
  if (!operators) return;
  callback =
      at::addThreadLocalCallback(at::RecordFunctionCallback(OnStart, OnEnd)
                                     .needsInputs(true)
                                     .scopes({at::RecordScope::FUNCTION}));
}

LaunchRecorder::~LaunchRecorder() {
  if (callback != at::INVALID_CALLBACK_HANDLE) at::removeCallback(callback);
  callback = at::INVALID_CALLBACK_HANDLE;
  recording = nullptr;
}

namespace {

// Calls `run` with a model's weights and implementation on the recording
// device. Returns the recorded launches.
template <typename Run>
std::vector<Launch> Recorded(const ModelConfig& config, Run run) {
  const c10::InferenceMode inference;
  weights::StateDict weights([](const std::string&, at::IntArrayRef shape) {
    return at::empty(shape, at::TensorOptions(at::kMeta));
  });
  const tuning::ScanPlanChooser chooser({"an H200", 132, ""}, std::nullopt,
                                        /*deterministic=*/false);
  const RecordingOps recording_ops;
  const ops::CudaImplementation cuda(recording_ops, at::kMeta,
                                     {config.precision, &chooser});
  return run(weights.root(at::kMeta), cuda);
}

ops::ImageBatch Images(const ModelConfig& config, int images, int height,
                       int width) {
  return {{std::vector<ops::ImagePixels>(images, {nullptr, height, width}),
           height, width, config.mean, config.std},
          at::kMeta,
          ops::ComputeType(config.precision)};
}

}  // namespace

std::vector<Launch> LaunchesOf(const ModelConfig& config, int images) {
  return Recorded(config, [&](const auto& scope, const auto& implementation) {
    const engine::Network network(config, scope, implementation);
    const ops::ImageBatch batch =
        Images(config, images, config.image_size, config.image_size);
    LaunchRecorder recorder;
    network.Answers(batch, /*fold_rows=*/0);
    return recorder.launches;
  });
}

std::vector<Launch> BackboneLaunches(const ModelConfig& config, int images,
                                     int height, int width) {
  return Recorded(config, [&](const auto& scope, const auto& implementation) {
    const auto backbone = backbones::MakeBackbone(
        config.backbone, config.image_size, backbones::FeatureMaps::kAll, scope,
        implementation);
    const ops::ImageBatch batch = Images(config, images, height, width);
    LaunchRecorder recorder(/*operators=*/false);
    backbone->Forward(batch, /*fold_rows=*/0);
    return recorder.launches;
  });
}

std::vector<tuning::ScanShape> ScansOf(const ModelConfig& config, int images,
                                       int height, int width) {
  std::vector<tuning::ScanShape> scans;
  for (const Launch& launch : BackboneLaunches(config, images, height, width)) {
    if (launch.kind == LaunchKind::kScan) scans.push_back(launch.scan);
  }
  return scans;
}

}  // namespace sfmamba::model
