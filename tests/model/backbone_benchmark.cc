// Times a whole model with deterministic weights, as the server runs it:
//   backbone_benchmark --variant=sf_mamba_t --batch=8 --dtype=fp32 --threads=2
// With --models=2, two batches run at once, each on all CPUs. This is the load
// of a server with many requests for two models. The benchmark itself loads
// only one model, which runs both batches. With --contexts=2, two batches run
// at once, each on half of the CPUs, as in a server with cpu_contexts: 2.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ATen/Parallel.h"
#include "ATen/record_function.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "model/config.h"
#include "model/engine/make_vision_model.h"
#include "model/ops/affinity.h"
#include "model/processor_group.h"
#include "model/tensor_memory.h"
#include "model/vision_model.h"
#include "model/weights/state_dict.h"
#include "tests/model/dtype_flag.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/run_model.h"

ABSL_FLAG(std::string, variant, "sf_mamba_t",
          "a row of the variants table; or everyday, everyday_detector or "
          "everyday_segmenter, of the sizes that models/ has");
ABSL_FLAG(int, models, 1, "batches of the model that run at once");
ABSL_FLAG(int, contexts, 1,
          "batches of the model at once, each on a part of the processors");
ABSL_FLAG(int, batch, 1, "images a run");
ABSL_FLAG(sfmamba::model::Precision, dtype, sfmamba::model::Precision::kFloat32,
          sfmamba::model::kDtypes);
ABSL_FLAG(int, threads, 0, "intra-op threads; 0: as many as processors");
ABSL_FLAG(absl::Duration, duration, absl::Seconds(5), "time to measure for");
ABSL_FLAG(bool, reference, false, "the reference, operator by operator");
ABSL_FLAG(bool, parts, false,
          "also the processor time in convolutions and matrix products; with "
          "one thread and one image only");
ABSL_FLAG(bool, json, false, "one line of JSON instead of text");

namespace sfmamba::model {
namespace {

// The CPU time of the calling thread. `all` is its total. The others are its
// times in libtorch's operators.
struct Parts {
  absl::Duration all;
  absl::Duration convolutions, products;
};

enum class Part { kOther, kConvolution, kGemm };

Part PartOf(const char* name) {
  for (const char* convolution :
       {"convolution_pointwise", "sfmamba::winograd_conv",
        "sfmamba::gemm_convolution", "sfmamba::int8_convolution",
        "sfmamba::depthwise_convolution"}) {
    if (absl::StrContains(name, convolution)) return Part::kConvolution;
  }
  for (const char* product : {"aten::mm", "aten::addmm", "sfmamba::product",
                              "mkldnn::_linear_pointwise"}) {
    if (absl::string_view(name) == product) return Part::kGemm;
  }
  return Part::kOther;
}

// RecordFunction passes this data from the start of an operator to its end.
struct Started : at::ObserverContext {
  Part part = Part::kOther;
  absl::Duration start;
};

absl::Duration ThreadTime() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

// A global variable, because RecordFunction accepts only plain functions.
// Therefore only one measurement may run at a time.
Parts* recorded_parts = nullptr;

std::unique_ptr<at::ObserverContext> Start(const at::RecordFunction& function) {
  auto started = std::make_unique<Started>();
  started->part = PartOf(function.name());
  if (started->part != Part::kOther) started->start = ThreadTime();
  return started;
}

void End(const at::RecordFunction&, at::ObserverContext* context) {
  const auto* started = static_cast<Started*>(context);
  if (started->part == Part::kOther) return;
  const absl::Duration time = ThreadTime() - started->start;
  if (started->part == Part::kConvolution) recorded_parts->convolutions += time;
  if (started->part == Part::kGemm) recorded_parts->products += time;
}

std::vector<ModelInput> Inputs(const at::Tensor& images) {
  std::vector<ModelInput> inputs(images.size(0));
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i].height = images.size(2);
    inputs[i].width = images.size(3);
    inputs[i].values = images[i].const_data_ptr<float>();
  }
  return inputs;
}

void Print(const VisionModel& model, std::vector<double> ms,
           const Parts& parts) {
  std::sort(ms.begin(), ms.end());
  const double median = ms[ms.size() / 2];
  const int batch = absl::GetFlag(FLAGS_batch);
  const std::string dtype = AbslUnparseFlag(model.precision());
  std::string line = absl::StrFormat(
      absl::GetFlag(FLAGS_json)
          ? R"({"variant": "%s", "batch": %d, "dtype": "%s", "threads": %d, )"
            R"("device": "%s", "runs": %d, "images_per_second": %.2f, )"
            R"("ms_median": %.3f, "ms_min": %.3f, "ms_p90": %.3f)"
          : "%s batch %d %s, %d threads of %s, %d runs: %.2f images/s, "
            "batch ms median %.3f min %.3f p90 %.3f",
      absl::GetFlag(FLAGS_variant), batch, dtype, at::get_num_threads(),
      model.device(), ms.size(), batch * 1000 / median, median, ms[0],
      ms[ms.size() * 9 / 10]);
  if (absl::GetFlag(FLAGS_parts)) {
    const auto mean = [&](absl::Duration time) {
      return absl::ToDoubleMilliseconds(time) / ms.size();
    };
    line += absl::StrFormat(
        absl::GetFlag(FLAGS_json)
            ? R"(, "cpu_ms": %.3f, "cpu_ms_convolutions": %.3f, )"
              R"("cpu_ms_products": %.3f, "cpu_ms_other": %.3f)"
            : "; processor ms %.3f: convolutions %.3f, products %.3f, other "
              "%.3f",
        mean(parts.all), mean(parts.convolutions), mean(parts.products),
        mean(parts.all - parts.convolutions - parts.products));
  }
  if (absl::GetFlag(FLAGS_json)) line += "}";
  std::printf("%s\n", line.c_str());
}

// Returns the configuration of models/everyday*/1/config.textproto, but with
// square inputs.
ModelConfig EverydayConfig(const std::string& variant) {
  ModelConfig config;
  config.backbone.stem = Stem::kEfficientNetLite0;
  config.backbone.dim = 28;
  config.backbone.depths = {0, 0, 4, 2};
  config.backbone.num_heads = {1, 2, 4, 8};
  config.backbone.windows = {10, 5};
  config.num_classes = 20;
  config.image_size = 160;
  if (variant == "everyday") return config;
  config.backbone.windows = {20, 10};
  config.backbone.output_norms = true;
  config.resize = Resize::kKeepRatio;
  config.short_side = config.image_size = 256;
  config.long_side = 320;
  config.segmentation_channels = config.detector.channels = 48;
  config.detector.fc_width = 192;
  config.detector.anchor_scale = 6;
  config.detector.rpn_candidates = 200;
  config.detector.proposals = 100;
  config.detector.finest_scale = 28;
  config.task = variant == "everyday_detector" ? VisionTask::kDetection
                                               : VisionTask::kSegmentation;
  return config;
}

// Runs `count` batches concurrently, each again and again in a context and a
// thread of its own. Returns the number of images per second of all threads
// together. If the model's contexts have different CPUs, the threads are spread
// over these contexts.
double RateAtOnce(VisionModel& model, const std::vector<ModelInput>& inputs,
                  int count) {
  const int loop_threads = at::get_num_threads();
  std::atomic<int64_t> images{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      at::set_num_threads(loop_threads);  // The limit is per thread.
      const std::unique_ptr<ExecutionContext> context =
          MakeContext(model, i % model.contexts());
      while (!stop) {
        (void)RunBatch(*context, inputs);
        images += inputs.size();
      }
    });
  }
  const absl::Time start = absl::Now();
  absl::SleepFor(absl::GetFlag(FLAGS_duration));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return images / absl::ToDoubleSeconds(absl::Now() - start);
}

// Measures RateAtOnce() and prints it. Returns 0, the exit code of the program.
int PrintRateAtOnce(VisionModel& model, const std::vector<ModelInput>& inputs,
                    int count) {
  const double rate = RateAtOnce(model, inputs, count);
  if (absl::GetFlag(FLAGS_json)) {
    std::printf(R"({"at_once": %d, "images_per_second": %.2f})"
                "\n",
                count, rate);
  } else {
    std::printf("%d at once: %.2f images/s\n", count, rate);
  }
  return 0;
}

// Divides the CPUs of this thread among the contexts. Returns a group of CPUs
// for each context.
std::vector<ProcessorGroup> Groups(int contexts) {
  const std::vector<int> processors = ops::ThreadProcessors();
  std::vector<ProcessorGroup> groups(contexts);
  for (size_t i = 0; i < processors.size(); ++i) {
    groups[i % contexts].processors.push_back(processors[i]);
  }
  for (ProcessorGroup& group : groups) {
    group.threads = static_cast<int>(group.processors.size());
  }
  return groups;
}

int Main() {
  const std::string variant = absl::GetFlag(FLAGS_variant);
  const bool everyday = absl::StartsWith(variant, "everyday");
  absl::StatusOr<ModelConfig> config =
      everyday ? EverydayConfig(variant) : VariantConfig(variant);
  if (!config.ok()) {
    std::fprintf(stderr, "%s\n", config.status().ToString().c_str());
    return 1;
  }
  config->precision = absl::GetFlag(FLAGS_dtype);
  if (absl::GetFlag(FLAGS_threads) > 0) {
    at::set_num_threads(absl::GetFlag(FLAGS_threads));
  }
  const int contexts = absl::GetFlag(FLAGS_contexts);
  if (contexts > static_cast<int>(ops::ThreadProcessors().size())) {
    std::fprintf(stderr, "--contexts: got %d, expected at most %d processors\n",
                 contexts, static_cast<int>(ops::ThreadProcessors().size()));
    return 1;
  }
  ModelOptions options;
  options.reference = absl::GetFlag(FLAGS_reference);
  if (contexts > 1) options.processor_groups = Groups(contexts);
  weights::StateDict weights(DeterministicParameter);
  const auto model = everyday
                         ? VisionModel::Random(*config, /*seed=*/1, options)
                         : engine::MakeVisionModel(*config, weights, options);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    return 1;
  }
  const at::Tensor images = DeterministicImages(
      {absl::GetFlag(FLAGS_batch), 3, config->image_size, config->image_size});
  const std::vector<ModelInput> inputs = Inputs(images);
  const std::unique_ptr<ExecutionContext> context = MakeContext(**model);
  for (int i = 0; i < 3; ++i) (void)RunBatch(*context, inputs);  // Warms up.

  const int at_once = std::max(absl::GetFlag(FLAGS_models), contexts);
  if (at_once > 1) return PrintRateAtOnce(**model, inputs, at_once);
  Parts parts;
  recorded_parts = &parts;
  if (absl::GetFlag(FLAGS_parts)) {
    at::addThreadLocalCallback(at::RecordFunctionCallback(Start, End)
                                   .scopes({at::RecordScope::FUNCTION}));
  }
  std::vector<double> ms;
  const absl::Time end = absl::Now() + absl::GetFlag(FLAGS_duration);
  while (absl::Now() < end || ms.size() < 5) {
    const absl::Time start = absl::Now();
    const absl::Duration cpu_start = ThreadTime();
    const auto results = RunBatch(*context, inputs);
    parts.all += ThreadTime() - cpu_start;
    ms.push_back(absl::ToDoubleMilliseconds(absl::Now() - start));
    if (!results.ok()) {
      std::fprintf(stderr, "%s\n", results.status().ToString().c_str());
      return 1;
    }
  }
  Print(**model, ms, parts);
  return 0;
}

}  // namespace
}  // namespace sfmamba::model

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  sfmamba::model::KeepTensorMemory();  // The server does this too.
  return sfmamba::model::Main();
}
