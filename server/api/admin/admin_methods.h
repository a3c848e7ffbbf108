#ifndef SFMAMBA_SERVER_API_ADMIN_ADMIN_METHODS_H_
#define SFMAMBA_SERVER_API_ADMIN_ADMIN_METHODS_H_

#include <vector>

#include "server/admin/model_changes.h"
#include "server/admin/runtime_settings.h"
#include "server/call/method_table.h"
#include "sfmamba/v1/admin.pb.h"

namespace sfmamba::api {

// Returns the methods of sfmamba.v1.AdminService. `build` contains the part of
// the server's description that never changes. `changes` and `settings` must
// outlive the calls.
std::vector<call::Method> AdminMethods(v1::ServerInfo build,
                                       admin::ModelChanges* changes,
                                       admin::RuntimeSettings* settings);

}  // namespace sfmamba::api

#endif  // SFMAMBA_SERVER_API_ADMIN_ADMIN_METHODS_H_
