#include "client/commands/task_model.h"

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sfmamba::client {

absl::StatusOr<v1::Model> ModelOfTask(v1::Model::Task task,
                                      absl::Duration timeout,
                                      VisionClient* client) {
  const absl::StatusOr<std::vector<v1::Model>> models =
      client->ListModels(timeout);
  if (!models.ok()) return models.status();
  // These are names of models without "/versions/...". So several versions of a
  // model count as one model.
  std::set<std::string> names, defaults;
  for (const v1::Model& model : *models) {
    if (model.task() != task) continue;
    const std::string name =
        model.name().substr(0, model.name().find("/versions/"));
    names.insert(name);
    if (model.default_for_task()) defaults.insert(name);
  }
  if (defaults.size() == 1) names = defaults;
  if (names.size() == 1) return client->GetModel(*names.begin(), timeout);
  return absl::FailedPreconditionError(
      absl::StrCat("the server has ", names.size(), " models for the task ",
                   v1::Model::Task_Name(task),
                   ", expected one or a default: name it by --model"));
}

absl::StatusOr<v1::Model> FindModel(const std::string& name,
                                    v1::Model::Task task,
                                    absl::Duration timeout,
                                    VisionClient* client) {
  return name.empty() ? ModelOfTask(task, timeout, client)
                      : client->GetModel(name, timeout);
}

}  // namespace sfmamba::client
