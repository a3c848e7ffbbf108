#include "client/commands/models_command.h"

#include "absl/strings/str_cat.h"
#include "client/commands/output/message_json.h"
#include "client/commands/output/model_table.h"
#include "client/commands/output/text_table.h"
#include "client/rpc/vision_client.h"

namespace sfmamba::client {
namespace {

std::string ClassTable(const v1::Model& model) {
  TextTable table({">class", "label"});
  for (const v1::ClassInfo& info : model.classes()) {
    table.AddRow({absl::StrCat(info.class_id()), info.label()});
  }
  return table.ToString();
}

int ShowOne(VisionClient& client, const std::string& name,
            const CommonFlags& flags, const Console& console) {
  const absl::StatusOr<v1::Model> model = client.GetModel(name, flags.deadline);
  if (!model.ok()) return RpcError(model.status(), flags, console);
  if (flags.json) {
    console.out << MessageJson(*model);
  } else {
    console.out << ModelTable({*model}) << "\n" << ClassTable(*model);
  }
  return kExitOk;
}

int ShowAll(VisionClient& client, const CommonFlags& flags,
            const Console& console) {
  const absl::StatusOr<std::vector<v1::Model>> models =
      client.ListModels(flags.deadline);
  if (!models.ok()) return RpcError(models.status(), flags, console);
  if (flags.json) {
    v1::ListModelsResponse list;
    list.mutable_models()->Assign(models->begin(), models->end());
    console.out << MessageJson(list);
  } else {
    console.out << ModelTable(*models);
  }
  return kExitOk;
}

}  // namespace

int RunModels(const std::vector<std::string>& arguments,
              const Console& console) {
  CommonFlags common;
  FlagSet flags("sfmamba models [NAME] [flags]",
                "Lists the server's models, or tells of one with its classes.");
  common.AddTo(&flags);
  std::vector<std::string> names;
  if (const auto exit = ParseArguments(&flags, arguments, &names, console)) {
    return *exit;
  }
  if (names.size() > 1) return UsageError("models takes one name", console);
  VisionClient client(common.server, common.client);
  return names.empty() ? ShowAll(client, common, console)
                       : ShowOne(client, names[0], common, console);
}

}  // namespace sfmamba::client
