#include "client/commands/classify_command.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/commands/picture_flags.h"
#include "client/commands/predict_files.h"
#include "client/commands/task_model.h"
#include "client/picture/draw.h"
#include "client/picture/resize.h"

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

struct ClassifyFlags {
  PredictFlags predict;
  PictureFlags picture;
  int top_k = 0;
  bool heat_map = false;
  bool resize = false;

  void AddTo(FlagSet* flags) {
    predict.AddTo("classifier", flags);
    flags->Add("top_k", "N", "categories a picture; 0: the server's choice, 5",
               &top_k);
    picture.AddTo(flags);
    flags->Add("heat_map", "",
               "draw over the pictures of --output_dir where the best class "
               "was seen",
               &heat_map);
    flags->Add("resize", "",
               "resize the pictures here, which spares the server most of its "
               "work; the answers are the same",
               &resize);
  }

  // Returns what is wrong with the flags, or "" if nothing is wrong.
  std::string Problem(const std::vector<std::string>& files) const {
    if (files.empty()) return "classify needs a file";
    if (heat_map == picture.output_dir.empty()) {
      return "--heat_map and --output_dir need each other";
    }
    return heat_map && resize ? "--heat_map excludes --resize" : "";
  }
};

// Makes `actions` resize the pictures for the model that `flags` name.
absl::Status AddResizing(const PredictFlags& flags,
                         VerbActions<v1::ClassifyResult>* actions) {
  VisionClient client(flags.common.server, flags.common.client);
  const absl::StatusOr<v1::Model> model = FindModel(
      flags.model, v1::Model::CLASSIFICATION, flags.common.deadline, &client);
  if (!model.ok()) return model.status();
  actions->prepare = [model = *model](const std::string& bytes) {
    return ResizeFor(model, bytes);
  };
  return absl::OkStatus();
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
  ClassifyFlags flags;
  FlagSet flag_set("sfmamba classify FILE... [flags]",
                   "Names what pictures (JPEG, PNG or WebP) show.");
  flags.AddTo(&flag_set);
  std::vector<std::string> files;
  if (const auto exit = ParseArguments(&flag_set, arguments, &files, console)) {
    return *exit;
  }
  const std::string problem = flags.Problem(files);
  if (!problem.empty()) return UsageError(problem, console);

  v1::ClassifyRequest request;
  v1::ClassifyParams* params = request.mutable_params();
  params->set_top_k(flags.top_k);
  if (flags.heat_map)
    params->mutable_heat_map()->set_encoding(v1::HeatMapParams::PNG);
  VerbActions<v1::ClassifyResult> actions;
  actions.rows = CategoryRows;
  actions.write_json = WriteCategories;
  const PictureFlags& picture = flags.picture;
  absl::Status status = picture.ParseClasses(params->mutable_class_filter());
  status.Update(picture.AddDrawing("classify", files, DrawHeatMap, &actions));
  if (!status.ok()) return UsageError(status.message(), console);
  const PredictFlags& predict = flags.predict;
  if (flags.resize) {
    status = AddResizing(predict, &actions);
    if (!status.ok()) return RpcError(status, predict.common, console);
  }
  const std::vector<FileOutcome> outcomes = PredictFiles<v1::ClassifyResponse>(
      files, std::move(request), actions, predict, console);
  const VerbTable table = {{">rank", "label", ">score"}, 1, "(no category)"};
  return ShowOutcomes(outcomes, table, predict, console);
}

}  // namespace sfmamba::client
