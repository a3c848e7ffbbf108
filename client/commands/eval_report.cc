#include "client/commands/eval_report.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/png_encoder.h"
#include "base/proto_duration.h"
#include "client/bench/latency_histogram.h"
#include "client/commands/inputs.h"
#include "client/commands/output/json_writer.h"
#include "client/commands/output/text_table.h"
#include "client/eval/confusion_picture.h"

namespace sfmamba::client {
namespace {

LatencyHistogram Latencies(const std::vector<FileOutcome>& outcomes) {
  LatencyHistogram latencies;
  for (const FileOutcome& outcome : outcomes) {
    if (!outcome.status.ok()) continue;
    latencies.Record(base::FromProto(outcome.timing.total()));
  }
  return latencies;
}

// Returns the error of the file or of processing its answer. Returns OK if
// there was no error.
const absl::Status& StatusOf(const FileOutcome& outcome) {
  return outcome.status.ok() ? outcome.drawing.status() : outcome.status;
}

// The counts of images or pixels of one class.
struct ClassFigures {
  std::string label;
  Confusion::Counts counts;
};

std::vector<ClassFigures> ByClass(const Evaluation& evaluation) {
  std::vector<ClassFigures> figures;
  for (const auto& [number, counts] : evaluation.confusion.Classes()) {
    const auto label = evaluation.labels.find(number);
    figures.push_back({label == evaluation.labels.end() ? absl::StrCat(number)
                                                        : label->second,
                       counts});
  }
  return figures;
}

constexpr std::pair<const char*, double> kPercentiles[] = {
    {"p50", 50}, {"p90", 90}, {"p99", 99}};

std::string ReportJson(const Evaluation& evaluation, int64_t failed) {
  const LatencyHistogram latencies = Latencies(evaluation.outcomes);
  JsonWriter json;
  json.BeginObject();
  json.Key("images").Integer(evaluation.outcomes.size() - failed);
  json.Key("failed").Integer(failed);
  for (const Metric& metric : evaluation.metrics) {
    json.Key(metric.name).Number(metric.value);
  }
  json.Key("server_latency_ms").BeginObject();
  for (const auto& [name, percent] : kPercentiles) {
    json.Key(name).Number(
        absl::ToDoubleMilliseconds(latencies.Percentile(percent)));
  }
  json.EndObject();
  json.Key("classes").BeginArray();
  for (const auto& [label, counts] : ByClass(evaluation)) {
    json.BeginObject().Key("label").String(label);
    json.Key("support").Integer(counts.right);
    json.Key("predicted").Integer(counts.answered);
    json.Key("true_positives").Integer(counts.both);
    json.Key("recall").Number(counts.Recall());
    json.Key("precision").Number(counts.Precision());
    json.Key("iou").Number(counts.Iou()).EndObject();
  }
  for (const DetectorFigures& one : evaluation.detector_classes) {
    json.BeginObject().Key("label").String(one.label);
    json.Key("objects").Integer(one.objects);
    json.Key("box_ap50").Number(one.boxes.ap50);
    json.Key("box_ap").Number(one.boxes.ap);
    if (one.masks) {
      json.Key("mask_ap50").Number(one.masks->ap50);
      json.Key("mask_ap").Number(one.masks->ap);
    }
    json.EndObject();
  }
  return json.EndArray().EndObject().text();
}

// Formats a fraction. Returns "-" for NaN, which results from a division by 0.
std::string Share(double share) {
  return std::isnan(share) ? "-" : absl::StrFormat("%.4f", share);
}

// Whole numbers above 1 are counts. All other values are fractions.
std::string FormatMetric(double value) {
  return value > 1 && value == std::floor(value)
             ? absl::StrFormat("%.0f", value)
             : Share(value);
}

TextTable DetectorTable(const std::vector<DetectorFigures>& classes) {
  TextTable table(
      {"class", ">objects", ">box AP50", ">box AP", ">mask AP50", ">mask AP"});
  for (const DetectorFigures& one : classes) {
    table.AddRow({one.label, absl::StrCat(one.objects), Share(one.boxes.ap50),
                  Share(one.boxes.ap), one.masks ? Share(one.masks->ap50) : "-",
                  one.masks ? Share(one.masks->ap) : "-"});
  }
  return table;
}

std::string ReportTables(const Evaluation& evaluation, int64_t failed) {
  std::string text;
  const std::vector<ClassFigures> figures = ByClass(evaluation);
  if (!figures.empty()) {
    TextTable classes(
        {"class", ">support", ">predicted", ">recall", ">precision", ">IoU"});
    for (const auto& [label, counts] : figures) {
      classes.AddRow({label, absl::StrCat(counts.right),
                      absl::StrCat(counts.answered), Share(counts.Recall()),
                      Share(counts.Precision()), Share(counts.Iou())});
    }
    text = absl::StrCat(classes.ToString(), "\n");
  }
  if (!evaluation.detector_classes.empty()) {
    text = absl::StrCat(DetectorTable(evaluation.detector_classes).ToString(),
                        "\n");
  }
  const LatencyHistogram latencies = Latencies(evaluation.outcomes);
  TextTable table({"what", ">value"});
  table.AddRow({"images", absl::StrCat(evaluation.outcomes.size() - failed)});
  table.AddRow({"failed", absl::StrCat(failed)});
  for (const Metric& metric : evaluation.metrics) {
    table.AddRow({metric.name, FormatMetric(metric.value)});
  }
  for (const auto& [name, percent] : kPercentiles) {
    table.AddRow({absl::StrCat("server latency, ", name),
                  FormatMilliseconds(latencies.Percentile(percent))});
  }
  return absl::StrCat(text, table.ToString());
}

absl::Status WriteConfusion(const Evaluation& evaluation,
                            const std::string& path) {
  const absl::StatusOr<std::string> png = base::EncodeRgbPng(
      DrawConfusion(evaluation.confusion, evaluation.labels));
  return png.ok() ? SaveFile(path, *png) : png.status();
}

}  // namespace

int ReportEvaluation(const Evaluation& evaluation, const CommonFlags& flags,
                     const std::string& confusion, const Console& console) {
  int64_t failed = 0;
  for (const FileOutcome& outcome : evaluation.outcomes) {
    if (StatusOf(outcome).ok()) continue;
    if (++failed > 10) continue;
    WriteErrorLine(
        absl::StrCat(outcome.file, ": ", StatusOf(outcome).message()), console);
  }
  if (flags.json) {
    console.out << ReportJson(evaluation, failed) << "\n";
  } else {
    console.out << ReportTables(evaluation, failed);
  }
  if (!confusion.empty()) {
    const absl::Status written = WriteConfusion(evaluation, confusion);
    if (!written.ok()) return UsageError(written.message(), console);
  }
  return failed == 0 ? kExitOk : kExitRpcError;
}

}  // namespace sfmamba::client
