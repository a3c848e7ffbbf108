#include "client/commands/predict_files.h"

#include <algorithm>
#include <cstdint>

#include "absl/random/random.h"
#include "absl/strings/str_format.h"
#include "base/proto_duration.h"
#include "client/commands/output/text_table.h"
#include "client/rpc/rpc_status.h"

namespace sfmamba::client {
namespace {

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
  return absl::ToDoubleMilliseconds(base::FromProto(duration));
}

// Returns the row that the table shows for a file in which the model found
// nothing, for example no object. It contains the text `table.nothing_found`.
std::vector<std::string> NothingFoundRow(const VerbTable& table,
                                         const std::string& file) {
  std::vector<std::string> row = {file};
  row.insert(row.end(), table.message_column, "-");
  row.push_back(table.nothing_found);
  return row;
}

bool IsAnswered(const FileOutcome& outcome) { return outcome.status.ok(); }

// Returns a table of the files that were answered.
std::string AnswerTable(const std::vector<FileOutcome>& outcomes,
                        const VerbTable& table) {
  std::vector<std::string> headings = {"file"};
  headings.insert(headings.end(), table.headings.begin(), table.headings.end());
  TextTable text(headings);
  for (const FileOutcome& outcome : outcomes) {
    if (!IsAnswered(outcome)) continue;
    if (outcome.rows.empty()) {
      text.AddRow(NothingFoundRow(table, outcome.file));
    }
    // Only the first row of a file shows its name.
    std::string file = outcome.file;
    for (const std::vector<std::string>& cells : outcome.rows) {
      std::vector<std::string> row = {std::exchange(file, "")};
      row.insert(row.end(), cells.begin(), cells.end());
      text.AddRow(row);
    }
  }
  return text.ToString();
}

std::string TimingTable(const std::vector<FileOutcome>& outcomes) {
  std::vector<std::string> headings = {"time in ms"};
  for (const Stage& stage : kStages) {
    headings.push_back(absl::StrCat(">", stage.name));
  }
  headings.push_back(">batch");
  headings.push_back("device");
  TextTable table(headings);
  for (const FileOutcome& outcome : outcomes) {
    if (!IsAnswered(outcome)) continue;
    const v1::Timing& timing = outcome.timing;
    std::vector<std::string> row = {outcome.file};
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

void WriteTiming(const v1::Timing& timing, JsonWriter* json) {
  json->Key("timing_ms").BeginObject();
  for (const Stage& stage : kStages) {
    json->Key(stage.name).Number(ToMilliseconds((timing.*stage.duration)()));
  }
  json->EndObject();
  json->Key("batch_size").Integer(timing.batch_size());
  json->Key("device").String(timing.device());
}

void WriteOutcome(const FileOutcome& outcome, bool timing, JsonWriter* json) {
  json->Key("file").String(outcome.file);
  if (!outcome.status.ok()) return WriteError(outcome.status, json);
  json->Key("model").String(outcome.model);
  outcome.write_json(json);
  if (timing) WriteTiming(outcome.timing, json);
  if (!outcome.drawing.ok()) {
    WriteError(outcome.drawing.status(), json);
  } else if (!outcome.drawing->empty()) {
    json->Key("drawing").String(*outcome.drawing);
  }
}

std::string AsJson(const std::vector<FileOutcome>& outcomes, bool timing) {
  JsonWriter json;
  json.BeginArray();
  for (const FileOutcome& outcome : outcomes) {
    json.BeginObject();
    WriteOutcome(outcome, timing, &json);
    json.EndObject();
  }
  return absl::StrCat(json.EndArray().text(), "\n");
}

// Returns the error of a file, with the file's name. Returns "" if there was no
// error.
std::string ErrorOf(const FileOutcome& outcome) {
  if (!outcome.sent) return std::string(outcome.status.message());
  if (!outcome.status.ok()) {
    return absl::StrCat(outcome.file, ": ", DescribeRpcError(outcome.status));
  }
  if (outcome.drawing.ok()) return "";
  return absl::StrCat("cannot draw '", outcome.file,
                      "': ", outcome.drawing.status().message());
}

// Returns kExitUsage if a picture could not be read or written. Otherwise
// returns kExitRpcError if an answer was malformed or the server returned an
// error.
int ExitCodeOf(const std::vector<FileOutcome>& outcomes) {
  int code = kExitOk;
  for (const FileOutcome& outcome : outcomes) {
    const absl::Status& drawn = outcome.drawing.status();
    if (!outcome.sent || (!drawn.ok() && !absl::IsDataLoss(drawn))) {
      return kExitUsage;
    }
    if (!outcome.status.ok() || !drawn.ok()) code = kExitRpcError;
  }
  return code;
}

}  // namespace

void PredictFlags::AddTo(absl::string_view kind, FlagSet* flags) {
  common.AddTo(flags);
  flags->Add(
      "model", "NAME",
      absl::StrCat("model to ask; empty: the server's only or default ", kind),
      &model);
  flags->Add("timing", "", "show where the server's time went", &timing);
  flags->Add("traced", "",
             "have the server record spans of the requests, and write the id "
             "of their trace",
             &traced);
}

std::string NewTrace(const Console& console) {
  absl::BitGen random;
  const auto digits = [&random] {
    return absl::StrFormat("%016x", absl::Uniform<uint64_t>(random) | 1);
  };
  const std::string trace = absl::StrCat(digits(), digits());
  WriteErrorLine(absl::StrCat("trace ", trace), console);
  return absl::StrCat("00-", trace, "-", digits(), "-01");
}

int ShowOutcomes(const std::vector<FileOutcome>& outcomes,
                 const VerbTable& table, const PredictFlags& flags,
                 const Console& console) {
  if (flags.common.json) {
    console.out << AsJson(outcomes, flags.timing);
  } else if (std::any_of(outcomes.begin(), outcomes.end(), IsAnswered)) {
    console.out << AnswerTable(outcomes, table);
    if (flags.timing) console.out << "\n" << TimingTable(outcomes);
  }
  for (const FileOutcome& outcome : outcomes) {
    const std::string error = ErrorOf(outcome);
    if (!error.empty()) WriteErrorLine(error, console);
  }
  return ExitCodeOf(outcomes);
}

}  // namespace sfmamba::client
