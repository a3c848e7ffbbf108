#include "client/commands/classify_command.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/commands/predict_files.h"

namespace sfmamba::client {
namespace {

Rows CategoryRows(const v1::ClassifyResult& result) {
  Rows rows;
  for (const v1::Category& category : result.categories()) {
    rows.push_back({absl::StrCat(rows.size() + 1), category.label(),
                    absl::StrFormat("%.4f", category.score())});
  }
  return rows;
}

void WriteCategories(const v1::ClassifyResult& result, JsonWriter* json) {
  json->Key("categories").BeginArray();
  for (const v1::Category& category : result.categories()) {
    json->BeginObject();
    json->Key("class_id").Integer(category.class_id());
    json->Key("label").String(category.label());
    json->Key("score").Number(category.score());
    json->EndObject();
  }
  json->EndArray();
}

}  // namespace

int RunClassify(const std::vector<std::string>& arguments,
                const Console& console) {
  PredictFlags predict;
  int top_k = 0;
  FlagSet flags("sfmamba classify FILE... [flags]",
                "Names what pictures (JPEG, PNG or WebP) show.");
  predict.AddTo("classifier", &flags);
  flags.Add("top_k", "N", "categories a picture; 0: the server's choice, 5",
            &top_k);
  std::vector<std::string> files;
  if (const auto exit = ParseArguments(&flags, arguments, &files, console)) {
    return *exit;
  }
  if (files.empty()) return UsageError("classify needs a file", console);

  v1::ClassifyRequest request;
  request.mutable_params()->set_top_k(top_k);
  VerbActions<v1::ClassifyResult> actions;
  actions.rows = CategoryRows;
  actions.write_json = WriteCategories;
  const std::vector<FileOutcome> outcomes = PredictFiles<v1::ClassifyResponse>(
      files, std::move(request), actions, predict, console);
  const VerbTable table = {{">rank", "label", ">score"}, 1, "(no category)"};
  return ShowOutcomes(outcomes, table, predict, console);
}

}  // namespace sfmamba::client
