#ifndef SFMAMBA_CLIENT_COMMANDS_TASK_MODEL_H_
#define SFMAMBA_CLIENT_COMMANDS_TASK_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/rpc/vision_client.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// Returns the model that answers requests of `task` that do not name a model.
// It is the only model of the task or the task's default. Returns
// FAILED_PRECONDITION if there is no such model.
absl::StatusOr<v1::Model> ModelOfTask(v1::Model::Task task,
                                      absl::Duration timeout,
                                      VisionClient* client);

// Returns the model `name`. If `name` is empty, returns ModelOfTask().
absl::StatusOr<v1::Model> FindModel(const std::string& name,
                                    v1::Model::Task task,
                                    absl::Duration timeout,
                                    VisionClient* client);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_TASK_MODEL_H_
