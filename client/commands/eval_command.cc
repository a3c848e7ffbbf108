#include "client/commands/eval_command.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands/eval_against.h"
#include "client/commands/eval_report.h"
#include "client/commands/evaluate.h"
#include "client/commands/inputs.h"
#include "client/commands/picture_flags.h"
#include "client/commands/predict_files.h"
#include "client/commands/task_model.h"
#include "client/eval/dataset.h"

namespace sfmamba::client {
namespace {

struct EvalFlags {
  PredictFlags predict;
  std::string against;
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
               "Label Studio export), maps (images/, maps/), a folder for "
               "each class, or with --against pictures alone",
               &dataset);
    flags->Add("against", "NAME",
               "a second model, whose answers those of --model are compared "
               "with: the same first class and the difference of logits, equal "
               "pixels, or matched boxes",
               &against);
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

  // Returns INVALID_ARGUMENT unless the flags name one dataset and, with
  // --against, two models.
  absl::Status Check() const {
    if (annotations.empty() != images.empty()) {
      return absl::InvalidArgumentError(
          "--annotations and --images need each other");
    }
    if (dataset.empty() == annotations.empty()) {
      return absl::InvalidArgumentError(
          "eval needs --dataset, or --annotations and --images");
    }
    if (predict.model.empty() && !against.empty()) {
      return absl::InvalidArgumentError("--against needs --model");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Dataset> Read(v1::Model::Task task) const {
    return dataset.empty() ? ReadCocoDataset(annotations, {images})
                           : ReadDataset(dataset, task);
  }
};

absl::StatusOr<v1::Model> NamedModel(const std::string& name,
                                     const CommonFlags& flags) {
  return VisionClient(flags.server, flags.client)
      .GetModel(name, flags.deadline);
}

// Returns the labels of the dataset's classes. For detection, only classes of
// objects that are not crowds are included.
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

// Returns INVALID_ARGUMENT if the dataset is for another task, or has classes
// that the model lacks and thus can never answer.
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

std::map<int, std::string> LabelsOf(const v1::Model& model) {
  std::map<int, std::string> labels;
  for (const v1::ClassInfo& known : model.classes()) {
    labels[known.class_id()] = known.label();
  }
  return labels;
}

// Returns INVALID_ARGUMENT unless both models have the same task and classes.
absl::Status CheckAlike(const v1::Model& model, const v1::Model& against) {
  if (model.task() == against.task() && LabelsOf(model) == LabelsOf(against)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(model.name(), " and ", against.name(),
                   " differ in task or classes and cannot be compared"));
}

// Evaluates the model. Also compares it with the model of --against, if given.
// Writes a detector's results to `found`.
Evaluation Run(const EvalFlags& eval, const Dataset& dataset,
               const std::map<int, std::string>& labels, std::string* found,
               const Console& console) {
  const PredictFlags& flags = eval.predict;
  const std::string& against = eval.against;
  switch (dataset.task) {
    case v1::Model::DETECTION:
      return against.empty()
                 ? EvaluateDetector(dataset, flags, nullptr, found, console)
                 : CompareDetectors(dataset, flags, against, found, console);
    case v1::Model::SEGMENTATION:
      return against.empty()
                 ? EvaluateSegmenter(dataset, flags, labels, nullptr, console)
                 : CompareSegmenters(dataset, flags, against, labels, console);
    default:
      return against.empty()
                 ? EvaluateClassifier(dataset, flags, labels, nullptr, console)
                 : CompareClassifiers(dataset, flags, against, labels, console);
  }
}

}  // namespace

int RunEval(const std::vector<std::string>& arguments, const Console& console) {
  EvalFlags eval;
  FlagSet flags("sfmamba eval --dataset DIR [flags]",
                "Tells how right a model is on a labelled folder, as served: "
                "top-1 and top-5, mean\nIoU, or average precision of boxes "
                "and masks, each by class. With --against also how\nmuch its "
                "answers differ from another model's; then pictures need no "
                "labels.");
  eval.AddTo(&flags);
  std::vector<std::string> rest;
  if (const auto exit = ParseArguments(&flags, arguments, &rest, console)) {
    return *exit;
  }
  if (!rest.empty()) {
    return UsageError(absl::StrCat("eval takes no '", rest[0], "'"), console);
  }
  const absl::Status named = eval.Check();
  if (!named.ok()) return UsageError(named.message(), console);
  const CommonFlags& common = eval.predict.common;
  absl::StatusOr<v1::Model> model = v1::Model();
  if (!eval.predict.model.empty()) {
    model = NamedModel(eval.predict.model, common);
  }
  if (!model.ok()) return RpcError(model.status(), common, console);
  if (!eval.against.empty()) {
    const auto against = NamedModel(eval.against, common);
    if (!against.ok()) return RpcError(against.status(), common, console);
    const absl::Status alike = CheckAlike(*model, *against);
    if (!alike.ok()) return UsageError(alike.message(), console);
  }
  const absl::StatusOr<Dataset> dataset = eval.Read(model->task());
  if (!dataset.ok()) return UsageError(dataset.status().message(), console);
  if (!dataset->labelled && eval.against.empty()) {
    return UsageError(
        absl::StrCat(eval.dataset,
                     ": the pictures have no labels; expected annotations.json "
                     "and images/, images/ and maps/, a folder for each class, "
                     "or --against"),
        console);
  }
  const bool detection = dataset->task == v1::Model::DETECTION;
  if (!(detection && dataset->labelled) && !eval.predictions.empty()) {
    return UsageError("--predictions is for COCO datasets", console);
  }
  if ((detection || !dataset->labelled) && !eval.confusion.empty()) {
    return UsageError(
        "--confusion is not for COCO datasets or pictures without labels",
        console);
  }
  if (eval.predict.model.empty()) {
    VisionClient client(common.server, common.client);
    model = ModelOfTask(dataset->task, common.deadline, &client);
    if (!model.ok()) return RpcError(model.status(), common, console);
    eval.predict.model = model->name();
  }
  const absl::Status fits = CheckModel(*dataset, *model);
  if (!fits.ok()) return UsageError(fits.message(), console);
  // A file that cannot be written is found here, before any picture is sent.
  for (const std::string& path : {eval.predictions, eval.confusion}) {
    const absl::Status status =
        path.empty() ? absl::OkStatus() : CheckCanWrite(path);
    if (!status.ok()) return UsageError(status.message(), console);
  }
  std::string found;
  const Evaluation evaluation =
      Run(eval, *dataset, LabelsOf(*model), &found, console);
  if (!eval.predictions.empty()) {
    const absl::Status written = SaveFile(eval.predictions, found);
    if (!written.ok()) return UsageError(written.message(), console);
  }
  const int exit_code =
      ReportEvaluation(evaluation, common, eval.confusion, console);
  if (!dataset->left_out.empty()) WriteErrorLine(dataset->left_out, console);
  return exit_code;
}

}  // namespace sfmamba::client
