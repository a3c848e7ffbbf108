#include "client/commands/eval_command.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/commands/eval_report.h"
#include "client/commands/inputs.h"
#include "client/commands/picture_flags.h"
#include "client/commands/predict_files.h"
#include "client/commands/task_model.h"
#include "client/eval/dataset.h"
#include "client/eval/scores.h"
#include "client/picture/masks.h"

namespace sfmamba::client {
namespace {

struct EvalFlags {
  PredictFlags predict;
  std::string dataset;
  std::string predictions;
  std::string confusion;

  void AddTo(FlagSet* flags) {
    predict.common.deadline = kPictureDeadline;
    predict.AddTo("model of the dataset's task", flags);
    flags->Add("dataset", "DIR",
               "COCO (annotations.json, images/), maps (images/, maps/), or a "
               "folder for each class",
               &dataset);
    flags->Add("predictions", "FILE",
               "where detections go, as COCO results, for tools/coco_ap.py; "
               "needed for COCO datasets",
               &predictions);
    flags->Add("confusion", "FILE",
               "where the confusion matrix is drawn, a PNG; not for COCO "
               "datasets",
               &confusion);
  }
};

// The samples by their pictures, to find them again.
using SampleOf = std::map<std::string, const Dataset::Sample*>;

template <typename Response, typename Request, typename Result>
std::vector<FileOutcome> SendAll(
    const Dataset& dataset, const Request& request, PredictFlags flags,
    const std::function<absl::Status(const Dataset::Sample&, const Result&)>&
        use,
    const Console& console) {
  SampleOf samples;
  std::vector<std::string> files;
  for (const Dataset::Sample& sample : dataset.samples) {
    samples[sample.picture] = &sample;
    files.push_back(sample.picture);
  }
  VerbActions<Result> actions;
  actions.rows = [](const Result&) { return Rows(); };
  actions.write_json = [](const Result&, JsonWriter*) {};
  actions.annotate = [&](const std::string& file, const Result& result) {
    const absl::Status used = use(*samples.at(file), result);
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
  json->Key("score").Number(detection.score());
  json->Key("bbox").BeginArray();
  json->Number(box.x_min()).Number(box.y_min());
  json->Number(box.x_max() - box.x_min()).Number(box.y_max() - box.y_min());
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

// Adds all detections to `found`; their precision is for pycocotools to say.
Evaluation EvaluateDetector(const Dataset& dataset, const EvalFlags& flags,
                            std::string* found, const Console& console) {
  v1::DetectRequest request;
  request.mutable_params()->set_mask_encoding(v1::DetectParams::COCO_RLE);
  JsonWriter json;
  json.BeginArray();
  int64_t count = 0;
  Evaluation evaluation;
  evaluation.outcomes =
      SendAll<v1::DetectResponse, v1::DetectRequest, v1::DetectResult>(
          dataset, request, flags.predict,
          [&](const Dataset::Sample& sample, const v1::DetectResult& result) {
            for (const v1::Detection& detection : result.detections()) {
              const auto category = dataset.classes.find(detection.label());
              if (category == dataset.classes.end()) continue;
              ++count;
              WriteCocoResult(sample.image_id, category->second, detection,
                              &json);
            }
            return absl::OkStatus();
          },
          console);
  absl::StrAppend(found, json.EndArray().text(), "\n");
  evaluation.metrics = {{"detections", static_cast<double>(count)}};
  return evaluation;
}

// The model that was named.
absl::StatusOr<v1::Model> NamedModel(const PredictFlags& flags) {
  return VisionClient(flags.common.server, flags.common.client)
      .GetModel(flags.model, flags.common.deadline);
}

// INVALID_ARGUMENT if the dataset is for another task or has a class that the
// model lacks, which could never be answered.
absl::Status CheckModel(const Dataset& dataset, const v1::Model& model) {
  if (model.task() != dataset.task) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the dataset is for ", v1::Model::Task_Name(dataset.task), ", ",
        model.name(), " for ", v1::Model::Task_Name(model.task())));
  }
  std::map<std::string, int64_t> unknown = dataset.classes;
  for (const v1::ClassInfo& known : model.classes()) {
    unknown.erase(known.label());
  }
  if (unknown.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(model.name(), " has no class '", unknown.begin()->first,
                   "', which the dataset has"));
}

}  // namespace

int RunEval(const std::vector<std::string>& arguments, const Console& console) {
  EvalFlags eval;
  FlagSet flags("sfmamba eval --dataset DIR [flags]",
                "Tells how right a model is on a labelled folder, as served: "
                "top-1 and top-5, mean\nIoU, each by class, or COCO results "
                "to be scored.");
  eval.AddTo(&flags);
  std::vector<std::string> rest;
  if (const auto exit = ParseArguments(&flags, arguments, &rest, console)) {
    return *exit;
  }
  if (eval.dataset.empty() || !rest.empty()) {
    return UsageError("eval needs --dataset and nothing else", console);
  }
  const CommonFlags& common = eval.predict.common;
  absl::StatusOr<v1::Model> model = v1::Model();
  if (!eval.predict.model.empty()) model = NamedModel(eval.predict);
  if (!model.ok()) return RpcError(model.status(), common, console);
  const absl::StatusOr<Dataset> dataset =
      ReadDataset(eval.dataset, model->task());
  if (!dataset.ok()) return UsageError(dataset.status().message(), console);
  const bool detection = dataset->task == v1::Model::DETECTION;
  if (detection == eval.predictions.empty()) {
    return UsageError(detection ? "a COCO dataset needs --predictions"
                                : "--predictions is for COCO datasets",
                      console);
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
  return ReportEvaluation(evaluation, common, eval.confusion, console);
}

}  // namespace sfmamba::client
