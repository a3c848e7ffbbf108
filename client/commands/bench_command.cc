#include "client/commands/bench_command.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/bench/load_generator.h"
#include "client/commands/inputs.h"
#include "client/commands/progress_bar.h"

namespace sfmamba::client {
namespace {

constexpr int kClosedLoopInFlight = 16;
constexpr int kOpenLoopInFlight = 256;  // The streams of a connection.

struct BenchFlags {
  CommonFlags common;
  std::string method = "classify";
  std::string model;
  std::string tensor;
  int images = 1;
  int concurrency = 0;
  int seed = 1;
  LoadOptions load;

  void AddTo(FlagSet* flags) {
    common.AddTo(flags);
    flags->Add("method", "classify|detect|segment",
               "what to ask for (of detect: boxes and masks)", &method);
    flags->Add("model", "NAME",
               "model to ask; empty: the server's only one for the method",
               &model);
    flags->Add("tensor", "fp32|uint8",
               "send random preprocessed tensors instead of files", &tensor);
    flags->Add("images", "N", "images a request", &images);
    flags->Add("concurrency", "N",
               "requests in flight; 0: 16, or with --rate at most 256",
               &concurrency);
    flags->Add("rate", "R",
               "open loop: R requests a second on average, Poisson; 0: closed "
               "loop",
               &load.rate);
    flags->Add("seed", "N", "of the arrivals and the tensors", &seed);
    flags->Add("duration", "DURATION", "how long to measure", &load.duration);
    flags->Add("requests", "N", "how many to measure instead; 0: by duration",
               &load.requests);
    flags->Add("warmup", "DURATION", "load before, not measured", &load.warmup);
  }

  // What is wrong with the values; empty: nothing.
  std::string Complaint() const {
    if (method != "classify" && method != "detect" && method != "segment") {
      return absl::StrCat(
          "--method: expected classify, detect or segment, got '", method, "'");
    }
    if (images < 1 || images > 64) return "--images: expected 1 to 64";
    if (concurrency < 0) return "--concurrency: expected 0 or more";
    if (load.rate < 0) return "--rate: expected 0 or more";
    if (load.requests < 0) return "--requests: expected 0 or more";
    if (load.duration <= absl::ZeroDuration()) {
      return "--duration: expected more than 0";
    }
    if (load.warmup < absl::ZeroDuration()) {
      return "--warmup: expected 0 or more";
    }
    if (!tensor.empty() && tensor != "fp32" && tensor != "uint8") {
      return absl::StrCat("--tensor: expected fp32 or uint8, got '", tensor,
                          "'");
    }
    return "";
  }

  LoadOptions ToLoadOptions() const {
    LoadOptions options = load;
    options.seed = seed;
    options.deadline = common.deadline;
    options.max_in_flight = concurrency > 0 ? concurrency
                            : load.rate > 0 ? kOpenLoopInFlight
                                            : kClosedLoopInFlight;
    return options;
  }
};

// Requests like `request` of flags.images pictures each, so that every picture
// begins one.
template <typename Request>
std::vector<Request> MakeRequests(const Request& request,
                                  const std::vector<v1::Image>& images,
                                  const BenchFlags& flags) {
  std::vector<Request> requests(images.size(), request);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].set_model(flags.model);
    requests[i].mutable_options()->set_include_timing(true);
    for (int k = 0; k < flags.images; ++k) {
      *requests[i].add_images() = images[(i + k) % images.size()];
    }
  }
  return requests;
}

LoadReport Measure(VisionClient& client, const std::vector<v1::Image>& images,
                   const BenchFlags& flags, const LoadOptions& options,
                   const Console& console) {
  ProgressBar progress(console.err, console.show_progress);
  const auto show = [&](double fraction) { progress.Show(fraction, "bench"); };
  const auto run = [&](const auto& request) {
    return GenerateLoad(client, MakeRequests(request, images, flags), options,
                        show);
  };
  if (flags.method == "segment") return run(v1::SegmentRequest());
  if (flags.method == "classify") return run(v1::ClassifyRequest());
  v1::DetectRequest request;
  request.mutable_params()->set_mask_encoding(v1::DetectParams::COCO_RLE);
  return run(request);
}

// A name and a value for each figure of a report, in the order they are shown.
std::vector<std::pair<const char*, absl::Duration>> LatencyFigures(
    const LatencyHistogram& latency) {
  return {{"mean", latency.Mean()},        {"p50", latency.Percentile(50)},
          {"p90", latency.Percentile(90)}, {"p95", latency.Percentile(95)},
          {"p99", latency.Percentile(99)}, {"p99.9", latency.Percentile(99.9)},
          {"max", latency.Max()}};
}

std::vector<std::pair<const char*, absl::Duration>> StageFigures(
    const StageMeans& stages) {
  return {{"decode", stages.decode},
          {"preprocess", stages.preprocess},
          {"queue", stages.queue},
          {"inference", stages.inference},
          {"postprocess", stages.postprocess},
          {"total", stages.total}};
}

std::string Figures(
    const std::vector<std::pair<const char*, absl::Duration>>& figures) {
  std::string text;
  for (const auto& [name, value] : figures) {
    absl::StrAppend(&text, "  ", name, " ", FormatMilliseconds(value));
  }
  return text;
}

std::string AsText(const LoadReport& report, const LoadOptions& options,
                   const BenchFlags& flags) {
  std::string text = absl::StrFormat(
      "%s, %d image(s) a request, measured for %s after %s of warm-up\n",
      options.rate > 0
          ? absl::StrFormat("open loop at %g requests/s", options.rate)
          : absl::StrFormat("closed loop, %d in flight", options.max_in_flight),
      flags.images, absl::FormatDuration(report.elapsed),
      absl::FormatDuration(options.warmup));
  absl::StrAppendFormat(&text, "throughput   %.1f images/s\n",
                        report.images_per_second);
  absl::StrAppend(&text, "latency    ", Figures(LatencyFigures(report.latency)),
                  "\n");
  absl::StrAppendFormat(&text, "batch size   %.2f mean\n",
                        report.mean_batch_size);
  absl::StrAppend(&text, "stage means", Figures(StageFigures(report.stages)),
                  "\n");
  for (const auto& [code, count] : report.codes) {
    absl::StrAppendFormat(&text, "answers      %8d  %s\n", count, code);
  }
  return text;
}

void WriteFigures(
    const std::vector<std::pair<const char*, absl::Duration>>& figures,
    JsonWriter* json) {
  json->BeginObject();
  for (const auto& [name, value] : figures) {
    json->Key(name).Number(absl::ToDoubleMilliseconds(value));
  }
  json->EndObject();
}

std::string AsJson(const LoadReport& report, const LoadOptions& options,
                   const BenchFlags& flags) {
  JsonWriter json;
  json.BeginObject();
  json.Key("server").String(flags.common.server);
  json.Key("method").String(flags.method);
  json.Key("model").String(flags.model);
  json.Key("input").String(flags.tensor.empty() ? "encoded" : flags.tensor);
  json.Key("loop").String(options.rate > 0 ? "open" : "closed");
  json.Key("rate").Number(options.rate);
  json.Key("seed").Integer(flags.seed);
  json.Key("max_in_flight").Integer(options.max_in_flight);
  json.Key("images_per_request").Integer(flags.images);
  json.Key("elapsed_s").Number(absl::ToDoubleSeconds(report.elapsed));
  json.Key("requests").Integer(report.requests);
  json.Key("images").Integer(report.images);
  json.Key("images_per_s").Number(report.images_per_second);
  json.Key("mean_batch_size").Number(report.mean_batch_size);
  json.Key("latency_ms");
  WriteFigures(LatencyFigures(report.latency), &json);
  json.Key("stage_means_ms");
  WriteFigures(StageFigures(report.stages), &json);
  json.Key("codes").BeginObject();
  for (const auto& [code, count] : report.codes) json.Key(code).Integer(count);
  json.EndObject();
  return absl::StrCat(json.EndObject().text(), "\n");
}

}  // namespace

int RunBench(const std::vector<std::string>& arguments,
             const Console& console) {
  BenchFlags flags;
  FlagSet flag_set(
      "sfmamba bench (FILE... | --tensor=fp32|uint8) [flags]",
      "Loads the server and measures it. A closed loop (the default) finds "
      "what it\n"
      "can do; an open loop (--rate) what callers see, counted from when each\n"
      "request was due, so that a slow server cannot hide behind waiting "
      "callers.");
  flags.AddTo(&flag_set);
  std::vector<std::string> files;
  if (const auto exit = ParseArguments(&flag_set, arguments, &files, console)) {
    return *exit;
  }
  const std::string complaint = flags.Complaint();
  if (!complaint.empty()) return UsageError(complaint, console);
  if (files.empty() == flags.tensor.empty()) {
    return UsageError("bench needs either files or --tensor", console);
  }

  VisionClient client(flags.common.server);
  std::vector<v1::Image> images;
  for (const std::string& file : files) {
    absl::StatusOr<std::string> bytes = ReadFile(file);
    if (!bytes.ok()) return UsageError(bytes.status().message(), console);
    images.emplace_back().set_encoded(*std::move(bytes));
  }
  if (!flags.tensor.empty()) {
    const absl::StatusOr<v1::Model> model =
        client.GetModel(flags.model, flags.common.deadline);
    if (!model.ok()) return RpcError(model.status(), flags.common, console);
    v1::Tensor::DataType type = v1::Tensor::DATA_TYPE_UNSPECIFIED;
    v1::Tensor::DataType_Parse(absl::AsciiStrToUpper(flags.tensor), &type);
    absl::StatusOr<v1::Image> image = SyntheticTensor(*model, type, flags.seed);
    if (!image.ok()) return RpcError(image.status(), flags.common, console);
    images.push_back(*std::move(image));
  }

  const LoadOptions options = flags.ToLoadOptions();
  const LoadReport report = Measure(client, images, flags, options, console);
  console.out << (flags.common.json ? AsJson(report, options, flags)
                                    : AsText(report, options, flags));
  return report.codes.count("OK") > 0 ? kExitOk : kExitRpcError;
}

}  // namespace sfmamba::client
