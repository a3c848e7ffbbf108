// Times the parts of UperNet with random weights on one picture of noise:
//   segmenter_benchmark --variant=sf_mamba_t --height=512 --width=683
// One round warms up. The program prints the medians of the other rounds. It
// also prints a hash of the logits. The hashes of two runs show whether, for
// example, two numbers of threads give the same bits.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "ATen/Parallel.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_format.h"
#include "c10/core/InferenceMode.h"
#include "model/backbones/backbone.h"
#include "model/config.h"
#include "model/heads/segmentation_head.h"
#include "model/ops/parallel.h"
#include "model/tensor_memory.h"
#include "model/weights/random_weights.h"
#include "model/weights/state_dict.h"
#include "tests/model/dtype_flag.h"
#include "tests/model/implementations.h"
#include "tests/model/stopwatch.h"
#include "tests/testing/deterministic.h"

ABSL_FLAG(std::string, variant, "sf_mamba_t", "a row of the variants table");
ABSL_FLAG(int, height, 512, "pixels of the network's input");
ABSL_FLAG(int, width, 683, "likewise");
ABSL_FLAG(int, original_height, 480, "pixels of the picture");
ABSL_FLAG(int, original_width, 640, "likewise");
ABSL_FLAG(int, attention_window, 0, "side of stage 3's sub-windows; 0: none");
ABSL_FLAG(sfmamba::model::Precision, dtype, sfmamba::model::Precision::kFloat32,
          sfmamba::model::kDtypes);
ABSL_FLAG(int, threads, 0, "intra-op threads; 0: as many as processors");
ABSL_FLAG(int, rounds, 3, "rounds to measure");
ABSL_FLAG(bool, backbone_only, false, "without the head");
ABSL_FLAG(bool, reference, false, "the reference, operator by operator");
ABSL_FLAG(bool, json, false, "one line of JSON instead of text");

namespace sfmamba::model {
namespace {

std::vector<int> Widths(const BackboneConfig& config) {
  return {config.width(0), config.width(1), config.width(2), config.width(3)};
}

// Returns FNV-1a of the values' bytes.
uint64_t Hash(const at::Tensor& values) {
  const auto* bytes = static_cast<const uint8_t*>(values.const_data_ptr());
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < values.nbytes(); ++i) {
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  }
  return hash;
}

// Runs one picture through all parts, like SegmentationHead. Returns a hash of
// the logits.
uint64_t Round(const backbones::Backbone& backbone,
               const heads::SegmentationHead& head, const at::Tensor& picture,
               const heads::ImageInfo& image, Stopwatch& timed) {
  const layers::Features features =
      timed("backbone", [&] { return backbone.Forward(picture, 0); });
  const layers::Features merged =
      timed("pools, laterals", [&] { return head.Merge(features); });
  const layers::Features refined =
      timed("fpn convs", [&] { return head.Refine(merged); });
  const at::Tensor fused =
      timed("fpn bottleneck", [&] { return head.Fuse(refined); });
  const at::Tensor logits =
      timed("classifier", [&] { return head.Classify(fused); });
  timed("tail", [&] { return head.Label(logits[0], image); });
  return Hash(logits);
}

void Print(const Stopwatch& timed, uint64_t hash) {
  const bool json = absl::GetFlag(FLAGS_json);
  const std::string parts = timed.Report(json);
  const std::string variant = absl::GetFlag(FLAGS_variant);
  const std::string dtype = AbslUnparseFlag(absl::GetFlag(FLAGS_dtype));
  if (json) {
    absl::PrintF(
        R"({"variant": "%s", "dtype": "%s", "height": %d, "width": %d, )"
        R"("threads": %d, "logits": "%016x", "peak_mib": %.0f%s})"
        "\n",
        variant, dtype, absl::GetFlag(FLAGS_height), absl::GetFlag(FLAGS_width),
        ops::LoopThreads(), hash, PeakMemoryMiB(), parts);
    return;
  }
  absl::PrintF("%s %s at %dx%d, %d threads: logits %016x, peak %.0f MiB\n%s",
               variant, dtype, absl::GetFlag(FLAGS_height),
               absl::GetFlag(FLAGS_width), ops::LoopThreads(), hash,
               PeakMemoryMiB(), parts);
}

int Main() {
  absl::StatusOr<ModelConfig> config =
      VariantConfig(absl::GetFlag(FLAGS_variant), VisionTask::kSegmentation);
  if (!config.ok()) {
    std::fprintf(stderr, "%s\n", config.status().ToString().c_str());
    return 1;
  }
  config->backbone.attention_windows[0] = absl::GetFlag(FLAGS_attention_window);
  if (absl::GetFlag(FLAGS_threads) > 0) {
    at::set_num_threads(absl::GetFlag(FLAGS_threads));
  }
  const ops::Implementation& implementation =
      absl::GetFlag(FLAGS_reference) ? Reference()
                                     : Cpu(absl::GetFlag(FLAGS_dtype));
  const c10::InferenceMode guard;
  const ops::SerialOperators serial;  // The server does this too.
  weights::StateDict weights(weights::MakeRandomWeights(0));
  const std::unique_ptr<backbones::Backbone> backbone = backbones::MakeBackbone(
      config->backbone, config->image_size, backbones::FeatureMaps::kAll,
      weights.root().Sub("backbone"), implementation);
  const heads::SegmentationHead head(
      Widths(config->backbone), config->segmentation_channels,
      config->num_classes, weights.root(), implementation);

  heads::ImageInfo image;
  image.height = absl::GetFlag(FLAGS_height);
  image.width = absl::GetFlag(FLAGS_width);
  image.original_height = absl::GetFlag(FLAGS_original_height);
  image.original_width = absl::GetFlag(FLAGS_original_width);
  at::Tensor picture = DeterministicImages({1, 3, image.height, image.width});
  if (!absl::GetFlag(FLAGS_reference))
    picture = picture.contiguous(at::MemoryFormat::ChannelsLast);
  Stopwatch timed;
  uint64_t hash = 0;
  for (int round = 0; round <= absl::GetFlag(FLAGS_rounds); ++round) {
    if (absl::GetFlag(FLAGS_backbone_only)) {
      timed("backbone", [&] { return backbone->Forward(picture, 0); });
      continue;
    }
    hash = Round(*backbone, head, picture, image, timed);
  }
  Print(timed, hash);
  return 0;
}

}  // namespace
}  // namespace sfmamba::model

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  sfmamba::model::KeepTensorMemory();  // The server does this too.
  return sfmamba::model::Main();
}
