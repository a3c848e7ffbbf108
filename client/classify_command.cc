#include "client/classify_command.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "client/inputs.h"
#include "client/progress_bar.h"
#include "client/rpc_status.h"
#include "client/text_table.h"
#include "client/vision_client.h"

namespace sfmamba {
namespace {

constexpr int kMaxInFlight = 8;

struct Answer {
  std::string file;
  absl::StatusOr<v1::ClassifyResponse> response;
  bool sent =
      false;  // False: the file could not be read, and `response` tells.
};

struct Stage {
  const char* name;
  const google::protobuf::Duration& (v1::Timing::*duration)() const;
};

constexpr Stage kStages[] = {
    {"decode", &v1::Timing::decode},
    {"preprocess", &v1::Timing::preprocess},
    {"queue", &v1::Timing::queue},
    {"inference", &v1::Timing::inference},
    {"postprocess", &v1::Timing::postprocess},
    {"total", &v1::Timing::total},
};

double ToMilliseconds(const google::protobuf::Duration& duration) {
  return 1e3 * duration.seconds() + 1e-6 * duration.nanos();
}

// Sends `request` once for each file and waits for all answers, which come in
// the order of the files.
std::vector<Answer> ClassifyFiles(const std::vector<std::string>& files,
                                  v1::ClassifyRequest request,
                                  const CommonFlags& flags,
                                  const Console& console) {
  std::vector<Answer> answers(files.size());
  absl::Mutex mu;
  int in_flight = 0;  // Guarded by mu, as is `response` of what was sent.
  const auto has_room = [&] { return in_flight < kMaxInFlight; };
  const auto all_done = [&] { return in_flight == 0; };
  ProgressBar progress(console.err, console.show_progress && files.size() > 20);
  VisionClient client(flags.server);
  for (size_t i = 0; i < files.size(); ++i) {
    Answer& answer = answers[i];
    answer.file = files[i];
    absl::StatusOr<std::string> bytes = ReadFile(files[i]);
    if (!bytes.ok()) {
      answer.response = bytes.status();
      continue;
    }
    answer.sent = true;
    request.mutable_images(0)->set_encoded(*std::move(bytes));
    {
      absl::MutexLock lock(&mu);
      mu.Await(absl::Condition(&has_room));
      ++in_flight;
    }
    progress.Show(static_cast<double>(i) / files.size(), files[i]);
    client.Classify(request, flags.deadline,
                    [&](absl::StatusOr<v1::ClassifyResponse> response) {
                      absl::MutexLock lock(&mu);
                      answer.response = std::move(response);
                      --in_flight;
                    });
  }
  absl::MutexLock lock(&mu);
  mu.Await(absl::Condition(&all_done));
  return answers;
}

std::string AnswerTable(const std::vector<Answer>& answers) {
  TextTable table({"file", ">rank", "label", ">score"});
  for (const Answer& answer : answers) {
    if (!answer.response.ok()) {
      table.AddRow({answer.file, "-",
                    answer.sent
                        ? DescribeRpcError(answer.response.status())
                        : std::string(answer.response.status().message())});
      continue;
    }
    int rank = 0;
    for (const v1::ClassifyResult& result : answer.response->results()) {
      for (const v1::Category& category : result.categories()) {
        ++rank;
        table.AddRow({rank == 1 ? answer.file : "", absl::StrCat(rank),
                      category.label(),
                      absl::StrFormat("%.4f", category.score())});
      }
    }
    if (rank == 0) table.AddRow({answer.file, "-", "(no category)"});
  }
  return table.ToString();
}

std::string TimingTable(const std::vector<Answer>& answers) {
  std::vector<std::string> headings = {"time in ms"};
  for (const Stage& stage : kStages) {
    headings.push_back(absl::StrCat(">", stage.name));
  }
  headings.push_back(">batch");
  headings.push_back("device");
  TextTable table(headings);
  for (const Answer& answer : answers) {
    if (!answer.response.ok()) continue;
    const v1::Timing& timing = answer.response->timing();
    std::vector<std::string> row = {answer.file};
    for (const Stage& stage : kStages) {
      row.push_back(
          absl::StrFormat("%.2f", ToMilliseconds((timing.*stage.duration)())));
    }
    row.push_back(absl::StrCat(timing.batch_size()));
    row.push_back(timing.device());
    table.AddRow(row);
  }
  return table.ToString();
}

void WriteResponse(const v1::ClassifyResponse& response, bool timing,
                   JsonWriter* json) {
  json->Key("model").String(response.model());
  json->Key("categories").BeginArray();
  for (const v1::ClassifyResult& result : response.results()) {
    for (const v1::Category& category : result.categories()) {
      json->BeginObject();
      json->Key("class_id").Integer(category.class_id());
      json->Key("label").String(category.label());
      json->Key("score").Number(category.score());
      json->EndObject();
    }
  }
  json->EndArray();
  if (!timing) return;
  json->Key("timing_ms").BeginObject();
  for (const Stage& stage : kStages) {
    json->Key(stage.name)
        .Number(ToMilliseconds((response.timing().*stage.duration)()));
  }
  json->EndObject();
  json->Key("batch_size").Integer(response.timing().batch_size());
  json->Key("device").String(response.timing().device());
}

std::string AnswersAsJson(const std::vector<Answer>& answers, bool timing) {
  JsonWriter json;
  json.BeginArray();
  for (const Answer& answer : answers) {
    json.BeginObject().Key("file").String(answer.file);
    if (answer.response.ok()) {
      WriteResponse(*answer.response, timing, &json);
    } else {
      WriteError(answer.response.status(), &json);
    }
    json.EndObject();
  }
  return absl::StrCat(json.EndArray().text(), "\n");
}

int ExitCodeOf(const std::vector<Answer>& answers) {
  int code = kExitOk;
  for (const Answer& answer : answers) {
    if (!answer.sent) return kExitUsage;
    if (!answer.response.ok()) code = kExitRpcError;
  }
  return code;
}

}  // namespace

int RunClassify(const std::vector<std::string>& arguments,
                const Console& console) {
  CommonFlags common;
  std::string model;
  int top_k = 0;
  bool timing = false;
  FlagSet flags("sfmamba classify FILE... [flags]",
                "Names what pictures (JPEG, PNG or WebP) show.");
  common.AddTo(&flags);
  flags.Add("model", "NAME",
            "model to ask; empty: the server's only classifier", &model);
  flags.Add("top_k", "N", "categories a picture; 0: the server's choice, 5",
            &top_k);
  flags.Add("timing", "", "show where the server's time went", &timing);
  std::vector<std::string> files;
  if (const auto exit = ParseArguments(&flags, arguments, &files, console)) {
    return *exit;
  }
  if (files.empty()) return UsageError("classify needs a file", console);

  v1::ClassifyRequest request;
  request.set_model(model);
  request.add_images();
  request.mutable_params()->set_top_k(top_k);
  request.mutable_options()->set_include_timing(timing);
  const std::vector<Answer> answers =
      ClassifyFiles(files, std::move(request), common, console);
  if (common.json) {
    console.out << AnswersAsJson(answers, timing);
  } else {
    console.out << AnswerTable(answers);
    if (timing) console.out << "\n" << TimingTable(answers);
  }
  return ExitCodeOf(answers);
}

}  // namespace sfmamba
