#include "client/commands/eval_command.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands/eval_report.h"
#include "client/commands/inputs.h"
#include "client/commands/picture_flags.h"
#include "client/commands/predict_files.h"
#include "client/commands/task_model.h"
#include "client/eval/dataset.h"
#include "client/eval/detector_score.h"
#include "client/eval/scores.h"
#include "client/picture/masks.h"

namespace sfmamba::client {
namespace {

// Average precision counts detections of low scores too. Detections below this
// score are not asked for.
constexpr float kLowestScore = 0.05f;

struct EvalFlags {
  PredictFlags predict;
  std::string dataset;
  std::string annotations;
  std::string images;
  std::string predictions;
  std::string confusion;

  void AddTo(FlagSet* flags) {
    predict.common.deadline = kPictureDeadline;
    predict.AddTo("model of the dataset's task", flags);
    flags->Add("dataset", "DIR",
               "COCO (annotations.json, images/, and what Roboflow, CVAT and "
               "Label Studio export), maps (images/, maps/), or a folder for "
               "each class",
               &dataset);
    flags->Add("annotations", "FILE",
               "in place of --dataset: a file in COCO's format", &annotations);
    flags->Add("images", "DIR", "the pictures of --annotations", &images);
    flags->Add("predictions", "FILE",
               "where detections go, as COCO results; empty: nowhere",
               &predictions);
    flags->Add("confusion", "FILE",
               "where the confusion matrix is drawn, a PNG; not for COCO "
               "datasets",
               &confusion);
  }

  // INVALID_ARGUMENT unless the flags name one dataset.
  absl::Status CheckDataset() const {
    if (annotations.empty() != images.empty()) {
      return absl::InvalidArgumentError(
          "--annotations and --images need each other");
    }
    if (dataset.empty() == annotations.empty()) {
      return absl::InvalidArgumentError(
          "eval needs --dataset, or --annotations and --images");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Dataset> Read(v1::Model::Task task) const {
    return dataset.empty() ? ReadCocoDataset(annotations, {images})
                           : ReadDataset(dataset, task);
  }
};

template <typename Response, typename Request, typename Result>
std::vector<FileOutcome> SendAll(
    const Dataset& dataset, const Request& request, PredictFlags flags,
    const std::function<absl::Status(const Dataset::Sample&, const Result&)>&
        use,
    const Console& console) {
  std::vector<std::string> files;
  for (const Dataset::Sample& sample : dataset.samples) {
    files.push_back(sample.picture);
  }
  VerbActions<Result> actions;
  actions.rows = [](const Result&) { return Rows(); };
  actions.write_json = [](const Result&, JsonWriter*) {};
  actions.annotate = [&](size_t i, const std::string&, const Result& result) {
    const absl::Status used = use(dataset.samples[i], result);
    return used.ok() ? absl::StatusOr<std::string>(std::string()) : used;
  };
  flags.timing = true;
  return PredictFiles<Response>(files, request, actions, flags, console);
}

// The number of the first class with a label, Confusion::kNone if there is
// none.
int NumberOf(const std::string& label,
             const std::map<int, std::string>& labels) {
  for (const auto& [number, name] : labels) {
    if (name == label) return number;
  }
  return Confusion::kNone;
}

Evaluation EvaluateClassifier(const Dataset& dataset, const EvalFlags& flags,
                              const std::map<int, std::string>& labels,
                              const Console& console) {
  v1::ClassifyRequest request;
  request.mutable_params()->set_top_k(
      std::min<int>(5, std::max<int>(1, dataset.classes.size())));
  TopKScore score;
  Evaluation evaluation;
  evaluation.labels = labels;
  evaluation.outcomes =
      SendAll<v1::ClassifyResponse, v1::ClassifyRequest, v1::ClassifyResult>(
          dataset, request, flags.predict,
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
          console);
  evaluation.metrics = {{"top1", score.Top(1)}, {"top5", score.Top(5)}};
  return evaluation;
}

Evaluation EvaluateSegmenter(const Dataset& dataset, const EvalFlags& flags,
                             const std::map<int, std::string>& labels,
                             const Console& console) {
  Evaluation evaluation;
  evaluation.labels = labels;
  Confusion& score = evaluation.confusion;
  evaluation.outcomes =
      SendAll<v1::SegmentResponse, v1::SegmentRequest, v1::SegmentResult>(
          dataset, v1::SegmentRequest(), flags.predict,
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
          console);
  evaluation.metrics = {{"miou", score.MeanIou()},
                        {"pixel_accuracy", score.Accuracy()}};
  return evaluation;
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

// The figures of a detector, and of each class that has objects.
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

// Writes all detections to `found`, as COCO results.
Evaluation EvaluateDetector(const Dataset& dataset, const EvalFlags& flags,
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
          dataset, request, flags.predict,
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
          console);
  for (size_t i = 0; i < dataset.samples.size(); ++i) {
    if (evaluation.outcomes[i].status.ok()) continue;
    score.AddUnanswered(dataset.samples[i].coco);
  }
  absl::StrAppend(found, json.EndArray().text(), "\n");
  int64_t objects = 0;
  for (const auto& [label, id] : dataset.classes) objects += score.objects(id);
  evaluation.metrics = {{"objects", static_cast<double>(objects)},
                        {"detections", static_cast<double>(count)}};
  ReportScore(score, dataset.classes, &evaluation);
  return evaluation;
}

// The model that was named.
absl::StatusOr<v1::Model> NamedModel(const PredictFlags& flags) {
  return VisionClient(flags.common.server, flags.common.client)
      .GetModel(flags.model, flags.common.deadline);
}

// The labels of classes that a picture or an object of the dataset has.
std::set<std::string> UsedLabels(const Dataset& dataset) {
  std::set<int64_t> ids;
  for (const Dataset::Sample& sample : dataset.samples) {
    for (const CocoObject& object : sample.coco.objects) {
      if (!object.crowd) ids.insert(object.category_id);
    }
  }
  std::set<std::string> labels;
  for (const auto& [label, id] : dataset.classes) {
    if (dataset.task != v1::Model::DETECTION || ids.count(id) > 0) {
      labels.insert(label);
    }
  }
  return labels;
}

// INVALID_ARGUMENT if the dataset is for another task or uses classes that the
// model lacks, which could never be answered.
absl::Status CheckModel(const Dataset& dataset, const v1::Model& model) {
  if (model.task() != dataset.task) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the dataset is for ", v1::Model::Task_Name(dataset.task), ", ",
        model.name(), " for ", v1::Model::Task_Name(model.task())));
  }
  std::set<std::string> unknown = UsedLabels(dataset);
  for (const v1::ClassInfo& known : model.classes()) {
    unknown.erase(known.label());
  }
  if (unknown.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(model.name(), " has no class '",
                   absl::StrJoin(unknown, "', '"), "', which the dataset has"));
}

}  // namespace

int RunEval(const std::vector<std::string>& arguments, const Console& console) {
  EvalFlags eval;
  FlagSet flags("sfmamba eval --dataset DIR [flags]",
                "Tells how right a model is on a labelled folder, as served: "
                "top-1 and top-5, mean\nIoU, or average precision of boxes "
                "and masks, each by class.");
  eval.AddTo(&flags);
  std::vector<std::string> rest;
  if (const auto exit = ParseArguments(&flags, arguments, &rest, console)) {
    return *exit;
  }
  if (!rest.empty()) {
    return UsageError(absl::StrCat("eval takes no '", rest[0], "'"), console);
  }
  const absl::Status named = eval.CheckDataset();
  if (!named.ok()) return UsageError(named.message(), console);
  const CommonFlags& common = eval.predict.common;
  absl::StatusOr<v1::Model> model = v1::Model();
  if (!eval.predict.model.empty()) model = NamedModel(eval.predict);
  if (!model.ok()) return RpcError(model.status(), common, console);
  const absl::StatusOr<Dataset> dataset = eval.Read(model->task());
  if (!dataset.ok()) return UsageError(dataset.status().message(), console);
  const bool detection = dataset->task == v1::Model::DETECTION;
  if (!detection && !eval.predictions.empty()) {
    return UsageError("--predictions is for COCO datasets", console);
  }
  if (detection && !eval.confusion.empty()) {
    return UsageError("--confusion is not for COCO datasets", console);
  }
  if (eval.predict.model.empty()) {
    VisionClient client(common.server, common.client);
    model = ModelOfTask(dataset->task, common.deadline, &client);
    if (!model.ok()) return RpcError(model.status(), common, console);
    eval.predict.model = model->name();
  }
  const absl::Status fits = CheckModel(*dataset, *model);
  if (!fits.ok()) return UsageError(fits.message(), console);
  std::map<int, std::string> labels;
  for (const v1::ClassInfo& known : model->classes()) {
    labels[known.class_id()] = known.label();
  }
  // Found out before pictures are sent, and not when all have been answered.
  for (const std::string& path : {eval.predictions, eval.confusion}) {
    const absl::Status status =
        path.empty() ? absl::OkStatus() : CheckCanWrite(path);
    if (!status.ok()) return UsageError(status.message(), console);
  }
  Evaluation evaluation;
  switch (dataset->task) {
    case v1::Model::DETECTION: {
      std::string found;
      evaluation = EvaluateDetector(*dataset, eval, &found, console);
      if (eval.predictions.empty()) break;
      const absl::Status written = SaveFile(eval.predictions, found);
      if (!written.ok()) return UsageError(written.message(), console);
      break;
    }
    case v1::Model::SEGMENTATION:
      evaluation = EvaluateSegmenter(*dataset, eval, labels, console);
      break;
    default:
      evaluation = EvaluateClassifier(*dataset, eval, labels, console);
  }
  const int exit_code =
      ReportEvaluation(evaluation, common, eval.confusion, console);
  if (!dataset->left_out.empty()) WriteErrorLine(dataset->left_out, console);
  return exit_code;
}

}  // namespace sfmamba::client
