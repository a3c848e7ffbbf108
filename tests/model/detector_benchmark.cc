// Times the parts of a detector with random weights on one picture of noise:
//   detector_benchmark --variant=sf_mamba_t --height=800 --width=1333
//       --dtype=bf16
// One round warms up. The program prints medians of the other rounds.

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Parallel.h"
#include "ATen/TensorOperators.h"
#include "ATen/ops/sigmoid.h"
#include "ATen/ops/softmax.h"
#include "ATen/ops/zeros.h"
#include "ATen/ops/zeros_like.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "c10/core/InferenceMode.h"
#include "model/backbones/backbone.h"
#include "model/config.h"
#include "model/heads/box_coder.h"
#include "model/heads/feature_pyramid.h"
#include "model/heads/multiclass_nms.h"
#include "model/heads/region_proposals.h"
#include "model/heads/roi_head.h"
#include "model/ops/cpu/answer_ops.h"
#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/parallel.h"
#include "model/tensor_memory.h"
#include "model/weights/random_weights.h"
#include "model/weights/state_dict.h"
#include "tests/model/dtype_flag.h"
#include "tests/model/stopwatch.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/line_masks.h"

ABSL_FLAG(std::string, variant, "sf_mamba_t", "a row of the variants table");
ABSL_FLAG(int, height, 800, "pixels of the network's input, without padding");
ABSL_FLAG(int, width, 1333, "likewise");
ABSL_FLAG(sfmamba::model::Precision, dtype, sfmamba::model::Precision::kFloat32,
          sfmamba::model::kDtypes);
ABSL_FLAG(int, threads, 0, "intra-op threads; 0: as many as processors");
ABSL_FLAG(int, rounds, 3, "rounds to measure");
ABSL_FLAG(bool, backbone_only, false, "without neck and heads");
ABSL_FLAG(bool, json, false, "one line of JSON instead of text");

namespace sfmamba::model {
namespace {

// The parts of a detector.
struct Detector {
  Detector(const ModelConfig& config, weights::StateDict::Scope root,
           const ops::Implementation& implementation)
      : backbone(backbones::MakeBackbone(config.backbone, config.image_size,
                                         backbones::FeatureMaps::kAll,
                                         root.Sub("backbone"), implementation)),
        neck({config.backbone.width(0), config.backbone.width(1),
              config.backbone.width(2), config.backbone.width(3)},
             config.detector.channels, root.Sub("neck"), implementation),
        rpn(config.detector, root.Sub("rpn_head"), implementation),
        roi(config.detector, config.num_classes, root.Sub("roi_head"),
            implementation) {}

  std::unique_ptr<backbones::Backbone> backbone;
  heads::FeaturePyramid neck;
  heads::RegionProposals rpn;
  heads::RoiHead roi;
};

// The results of a round. The digest covers all boxes, scores and masks. It
// must not depend on the number of threads.
struct Outcome {
  int64_t proposals = 0, detections = 0, mask_pixels = 0;
  uint64_t digest = 0xcbf29ce484222325;

  // Adds bytes to the digest, an FNV-1a hash.
  void Digest(const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      digest = (digest ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3;
    }
  }
};

// Runs one padded picture [1, 3, H, W] through all parts, like DetectionHead.
// `height` and `width` are the picture's size without padding.
Outcome Round(const ModelConfig& config, const Detector& detector,
              const at::Tensor& picture, int height, int width,
              Stopwatch& timed) {
  const DetectorConfig& settings = config.detector;
  const layers::Features features =
      timed("backbone", [&] { return detector.backbone->Forward(picture, 0); });
  const layers::Features pyramid =
      timed("pyramid", [&] { return detector.neck.Forward(features); });
  const auto levels =
      timed("rpn", [&] { return detector.rpn.Forward(pyramid); });
  at::Tensor rois = timed("proposals", [&] {
    return detector.rpn.Select(levels, height, width).boxes;
  });
  const int64_t proposals = rois.size(0);
  at::Tensor logits = at::zeros({proposals, config.num_classes + 1});
  heads::BoxOutput output;
  for (int stage = 0; stage < detector.roi.stages(); ++stage) {
    if (stage > 0) {
      rois = heads::RefineBoxes(rois, output.logits, output.deltas,
                                settings.box_stds[stage - 1], height, width);
    }
    output = timed(absl::StrCat("boxes ", stage + 1), [&] {
      return detector.roi.ForwardBoxes(stage, pyramid, rois);
    });
    logits += output.logits;
  }
  const heads::ScoredBoxes kept = timed("detections", [&] {
    return heads::MulticlassNms(
        heads::DecodeBoxes(rois, output.deltas,
                           settings.box_stds[detector.roi.stages() - 1], height,
                           width),
        at::softmax(logits / static_cast<double>(detector.roi.stages()), 1),
        {settings.score_threshold, settings.nms_iou_threshold,
         settings.max_detections});
  });
  const std::vector<at::Tensor> masks = timed("masks", [&] {
    return detector.roi.ForwardMasks(pyramid, kept.boxes, kept.labels);
  });
  const std::vector<base::Mask> pasted = timed("paste", [&] {
    at::Tensor sum = at::zeros_like(masks[0]);
    for (const at::Tensor& stage : masks) sum += at::sigmoid(stage);
    sum /= static_cast<double>(masks.size());
    std::vector<base::Mask> all;
    for (int64_t i = 0; i < sum.size(0); ++i) {
      all.push_back(
          PixelsOf(*ops::MakeMask(sum[i], heads::BoxAt(kept.boxes, i),
                                  settings.mask_threshold, height, width)));
    }
    return all;
  });
  Outcome outcome{proposals, kept.boxes.size(0)};
  for (const at::Tensor& tensor : {kept.boxes, kept.scores}) {
    outcome.Digest(tensor.const_data_ptr<float>(), tensor.nbytes());
  }
  for (const base::Mask& mask : pasted) {
    outcome.mask_pixels += mask.data.size();
    outcome.Digest(mask.data.data(), mask.data.size());
  }
  return outcome;
}

void Print(const Stopwatch& timed, const Outcome& outcome) {
  const bool json = absl::GetFlag(FLAGS_json);
  absl::PrintF(
      json ? R"({"variant": "%s", "dtype": "%s", "height": %d, "width": %d, )"
             R"("threads": %d, )"
             R"("proposals": %d, "detections": %d, "mask_pixels": %d, )"
             R"("digest": "%x", "peak_mib": %.0f%s})"
             "\n"
           : "%s %s at %dx%d, %d threads: %d proposals, %d detections, %d "
             "pixels of masks, digest %x, peak %.0f MiB\n%s",
      absl::GetFlag(FLAGS_variant), AbslUnparseFlag(absl::GetFlag(FLAGS_dtype)),
      absl::GetFlag(FLAGS_height), absl::GetFlag(FLAGS_width),
      ops::LoopThreads(), outcome.proposals, outcome.detections,
      outcome.mask_pixels, outcome.digest, PeakMemoryMiB(), timed.Report(json));
}

int Main() {
  const auto config =
      VariantConfig(absl::GetFlag(FLAGS_variant), VisionTask::kDetection);
  if (!config.ok()) {
    std::fprintf(stderr, "%s\n", config.status().ToString().c_str());
    return 1;
  }
  if (absl::GetFlag(FLAGS_threads) > 0) {
    at::set_num_threads(absl::GetFlag(FLAGS_threads));
  }
  const c10::InferenceMode guard;
  const ops::SerialOperators serial;  // The server does this too.
  weights::StateDict weights(weights::MakeRandomWeights(/*seed=*/1));
  const ops::CpuImplementation implementation(absl::GetFlag(FLAGS_dtype),
                                              /*int8_convolutions=*/false);
  const Detector detector(*config, weights.root(), implementation);
  const int height = absl::GetFlag(FLAGS_height);
  const int width = absl::GetFlag(FLAGS_width);
  at::Tensor picture =
      at::zeros({1, 3, config->Padded(height), config->Padded(width)})
          .contiguous(at::MemoryFormat::ChannelsLast);
  picture.narrow(2, 0, height)
      .narrow(3, 0, width)
      .copy_(DeterministicImages({1, 3, height, width}));
  Stopwatch timed;
  Outcome outcome;
  for (int i = 0; i <= absl::GetFlag(FLAGS_rounds); ++i) {
    if (absl::GetFlag(FLAGS_backbone_only)) {
      timed("backbone", [&] { return detector.backbone->Forward(picture, 0); });
      continue;
    }
    outcome = Round(*config, detector, picture, height, width, timed);
  }
  Print(timed, outcome);
  return 0;
}

}  // namespace
}  // namespace sfmamba::model

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  sfmamba::model::KeepTensorMemory();  // The server does this too.
  return sfmamba::model::Main();
}
