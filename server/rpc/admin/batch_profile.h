#ifndef SFMAMBA_SERVER_RPC_ADMIN_BATCH_PROFILE_H_
#define SFMAMBA_SERVER_RPC_ADMIN_BATCH_PROFILE_H_

#include "absl/status/status.h"
#include "server/repository/model_repository.h"
#include "sfmamba/v1/admin.pb.h"

namespace sfmamba::rpc {

// Says what is known now of how long a version's batches take. UNAVAILABLE with
// reason MODEL_NOT_READY unless it is READY.
absl::Status ToProto(const repository::ModelVersion& version,
                     v1::BatchProfile* profile);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_ADMIN_BATCH_PROFILE_H_
