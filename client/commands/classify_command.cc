#include "client/commands/classify_command.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/commands/picture_flags.h"
#include "client/commands/predict_files.h"
#include "client/picture/draw.h"

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

}  // namespace

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

int RunClassify(const std::vector<std::string>& arguments,
                const Console& console) {
  PredictFlags predict;
  PictureFlags picture;
  int top_k = 0;
  bool heat_map = false;
  FlagSet flags("sfmamba classify FILE... [flags]",
                "Names what pictures (JPEG, PNG or WebP) show.");
  predict.AddTo("classifier", &flags);
  flags.Add("top_k", "N", "categories a picture; 0: the server's choice, 5",
            &top_k);
  picture.AddTo(&flags);
  flags.Add("heat_map", "",
            "draw over the pictures of --output_dir where the best class was "
            "seen",
            &heat_map);
  std::vector<std::string> files;
  if (const auto exit = ParseArguments(&flags, arguments, &files, console)) {
    return *exit;
  }
  if (files.empty()) return UsageError("classify needs a file", console);

  if (heat_map == picture.output_dir.empty()) {
    return UsageError("--heat_map and --output_dir need each other", console);
  }

  v1::ClassifyRequest request;
  v1::ClassifyParams* params = request.mutable_params();
  params->set_top_k(top_k);
  if (heat_map)
    params->mutable_heat_map()->set_encoding(v1::HeatMapParams::PNG);
  VerbActions<v1::ClassifyResult> actions;
  actions.rows = CategoryRows;
  actions.write_json = WriteCategories;
  absl::Status status = picture.ParseClasses(params->mutable_class_filter());
  status.Update(picture.AddDrawing("classify", files, DrawHeatMap, &actions));
  if (!status.ok()) return UsageError(status.message(), console);
  const std::vector<FileOutcome> outcomes = PredictFiles<v1::ClassifyResponse>(
      files, std::move(request), actions, predict, console);
  const VerbTable table = {{">rank", "label", ">score"}, 1, "(no category)"};
  return ShowOutcomes(outcomes, table, predict, console);
}

}  // namespace sfmamba::client
