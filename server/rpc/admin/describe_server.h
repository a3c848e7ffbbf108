#ifndef SFMAMBA_SERVER_RPC_ADMIN_DESCRIBE_SERVER_H_
#define SFMAMBA_SERVER_RPC_ADMIN_DESCRIBE_SERVER_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "server/repository/model_repository.h"
#include "server/shares/memory_budget.h"
#include "sfmamba/v1/admin.pb.h"

namespace sfmamba::rpc {

// Says what is known now of all versions of model `id`, in ascending order.
void ToProto(const repository::ModelRepository& repository,
             const std::string& id,
             google::protobuf::RepeatedPtrField<v1::Model>* versions);

// Says what is known now of all models: versions, devices and waiting images.
void ToProto(const repository::ModelRepository& repository,
             google::protobuf::RepeatedPtrField<v1::ServedModel>* models);

// What the process and its requests hold now.
void ToProto(const server::MemoryBudget& budget, v1::MemoryUse* memory);

// Says what is known now of how long a version's batches take. UNAVAILABLE with
// reason MODEL_NOT_READY unless it is READY.
absl::Status ToProto(const repository::ModelVersion& version,
                     v1::BatchProfile* profile);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_ADMIN_DESCRIBE_SERVER_H_
