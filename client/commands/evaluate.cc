#include "client/commands/evaluate.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/inputs.h"
#include "client/commands/output/json_writer.h"
#include "client/eval/detector_score.h"
#include "client/eval/scores.h"
#include "client/picture/masks.h"

namespace sfmamba::client {
namespace {

// Average precision also needs detections with low scores, so all detections
// with at least this score are requested.
constexpr float kLowestScore = 0.05f;

template <typename Response, typename Request, typename Result>
std::vector<FileOutcome> SendAll(
    const Dataset& dataset, const Request& request, PredictFlags flags,
    const std::function<absl::Status(const Dataset::Sample&, const Result&)>&
        score,
    const Observe<Result>& observe, const Console& console) {
  std::vector<std::string> files;
  for (const Dataset::Sample& sample : dataset.samples) {
    files.push_back(sample.picture);
  }
  VerbActions<Result> actions;
  actions.rows = [](const Result&) { return Rows(); };
  actions.write_json = [](const Result&, JsonWriter*) {};
  actions.annotate = [&](size_t i, const std::string&, const Result& result) {
    absl::Status used;
    if (dataset.labelled) used = score(dataset.samples[i], result);
    if (used.ok() && observe != nullptr) used = observe(i, result);
    return used.ok() ? absl::StatusOr<std::string>(std::string()) : used;
  };
  flags.timing = true;
  return PredictFiles<Response>(files, request, actions, flags, console);
}

// Returns the number of the first class with this label, or Confusion::kNone if
// there is none.
int NumberOf(const std::string& label,
             const std::map<int, std::string>& labels) {
  for (const auto& [number, name] : labels) {
    if (name == label) return number;
  }
  return Confusion::kNone;
}

void WriteCocoResult(int64_t image_id, int64_t category_id,
                     const v1::Detection& detection, JsonWriter* json) {
  const v1::BoundingBox& box = detection.box();
  json->BeginObject();
  json->Key("image_id").Integer(image_id);
  json->Key("category_id").Integer(category_id);
  json->Key("score").Exact(detection.score());
  json->Key("bbox").BeginArray();
  json->Exact(box.x_min()).Exact(box.y_min());
  json->Exact(box.x_max() - box.x_min()).Exact(box.y_max() - box.y_min());
  json->EndArray();
  if (detection.has_rle()) {
    const v1::CocoRle& rle = detection.rle();
    json->Key("segmentation").BeginObject();
    json->Key("size").BeginArray();
    json->Integer(rle.height()).Integer(rle.width()).EndArray();
    json->Key("counts").String(rle.counts()).EndObject();
  }
  json->EndObject();
}

// Adds the figures of the detector, and of each class that has objects.
void ReportScore(const DetectorScore& score,
                 const std::map<std::string, int64_t>& classes,
                 Evaluation* evaluation) {
  const auto add = [&](const char* ap50, const char* ap,
                       const AveragePrecision::Figures& figures) {
    evaluation->metrics.push_back({ap50, figures.ap50});
    evaluation->metrics.push_back({ap, figures.ap});
  };
  add("box_ap50", "box_ap", score.boxes().Mean());
  std::map<int64_t, AveragePrecision::Figures> boxes = score.boxes().ByClass();
  std::map<int64_t, AveragePrecision::Figures> masks;
  if (score.masks() != nullptr) {
    add("mask_ap50", "mask_ap", score.masks()->Mean());
    masks = score.masks()->ByClass();
  }
  for (const auto& [label, id] : classes) {
    const auto box = boxes.find(id);
    if (box == boxes.end()) continue;
    DetectorFigures figures{label, score.objects(id), box->second, {}};
    const auto mask = masks.find(id);
    if (mask != masks.end()) figures.masks = mask->second;
    evaluation->detector_classes.push_back(std::move(figures));
  }
}

}  // namespace

Evaluation EvaluateClassifier(const Dataset& dataset, const PredictFlags& flags,
                              const std::map<int, std::string>& labels,
                              const Observe<v1::ClassifyResult>& observe,
                              const Console& console) {
  v1::ClassifyRequest request;
  v1::ClassifyParams& params = *request.mutable_params();
  if (observe == nullptr) {
    params.set_top_k(
        std::min<int>(5, std::max<int>(1, dataset.classes.size())));
  } else {
    params.set_top_k(labels.size());
    params.set_score_type(v1::ClassifyParams::LOGIT);
  }
  TopKScore score;
  Evaluation evaluation;
  evaluation.labels = labels;
  evaluation.outcomes =
      SendAll<v1::ClassifyResponse, v1::ClassifyRequest, v1::ClassifyResult>(
          dataset, request, flags,
          [&](const Dataset::Sample& sample, const v1::ClassifyResult& result) {
            int rank = -1;
            for (int i = 0; i < result.categories_size() && rank < 0; ++i) {
              if (result.categories(i).label() == sample.label) rank = i;
            }
            score.Add(rank);
            evaluation.confusion.Add(
                NumberOf(sample.label, labels),
                result.categories().empty()
                    ? Confusion::kNone
                    : NumberOf(result.categories(0).label(), labels));
            return absl::OkStatus();
          },
          observe, console);
  if (dataset.labelled) {
    evaluation.metrics = {{"top1", score.Top(1)}, {"top5", score.Top(5)}};
  }
  return evaluation;
}

Evaluation EvaluateSegmenter(const Dataset& dataset, const PredictFlags& flags,
                             const std::map<int, std::string>& labels,
                             const Observe<v1::SegmentResult>& observe,
                             const Console& console) {
  Evaluation evaluation;
  evaluation.labels = labels;
  Confusion& score = evaluation.confusion;
  evaluation.outcomes =
      SendAll<v1::SegmentResponse, v1::SegmentRequest, v1::SegmentResult>(
          dataset, v1::SegmentRequest(), flags,
          [&](const Dataset::Sample& sample, const v1::SegmentResult& result) {
            const absl::StatusOr<std::string> bytes = ReadFile(sample.map);
            if (!bytes.ok()) return bytes.status();
            const absl::StatusOr<IndexMap> right = DecodePngIndex(*bytes);
            if (!right.ok()) {
              return absl::InvalidArgumentError(
                  absl::StrCat(sample.map, ": ", right.status().message()));
            }
            const absl::StatusOr<IndexMap> answer = DecodeIndexMap(result);
            return answer.ok() ? score.Add(*right, *answer) : answer.status();
          },
          observe, console);
  if (dataset.labelled) {
    evaluation.metrics = {{"miou", score.MeanIou()},
                          {"pixel_accuracy", score.Accuracy()}};
  }
  return evaluation;
}

Evaluation EvaluateDetector(const Dataset& dataset, const PredictFlags& flags,
                            const Observe<v1::DetectResult>& observe,
                            std::string* found, const Console& console) {
  v1::DetectRequest request;
  request.mutable_params()->set_score_threshold(kLowestScore);
  request.mutable_params()->set_mask_encoding(v1::DetectParams::COCO_RLE);
  JsonWriter json;
  json.BeginArray();
  int64_t count = 0;
  DetectorScore score(dataset.classes);
  Evaluation evaluation;
  evaluation.outcomes =
      SendAll<v1::DetectResponse, v1::DetectRequest, v1::DetectResult>(
          dataset, request, flags,
          [&](const Dataset::Sample& sample, const v1::DetectResult& result) {
            for (const v1::Detection& detection : result.detections()) {
              const auto category = dataset.classes.find(detection.label());
              if (category == dataset.classes.end()) continue;
              ++count;
              WriteCocoResult(sample.coco.id, category->second, detection,
                              &json);
            }
            return score.Add(sample.coco, result);
          },
          observe, console);
  absl::StrAppend(found, json.EndArray().text(), "\n");
  if (!dataset.labelled) return evaluation;
  for (size_t i = 0; i < dataset.samples.size(); ++i) {
    if (evaluation.outcomes[i].status.ok()) continue;
    score.AddUnanswered(dataset.samples[i].coco);
  }
  int64_t objects = 0;
  for (const auto& [label, id] : dataset.classes) objects += score.objects(id);
  evaluation.metrics = {{"objects", static_cast<double>(objects)},
                        {"detections", static_cast<double>(count)}};
  ReportScore(score, dataset.classes, &evaluation);
  return evaluation;
}

}  // namespace sfmamba::client
