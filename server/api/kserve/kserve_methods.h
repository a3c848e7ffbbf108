#ifndef SFMAMBA_SERVER_API_KSERVE_KSERVE_METHODS_H_
#define SFMAMBA_SERVER_API_KSERVE_KSERVE_METHODS_H_

#include <functional>
#include <string>
#include <vector>

#include "server/admin/model_changes.h"
#include "server/call/method_table.h"

namespace sfmamba::kserve {

struct KserveOptions {
  std::string version;  // The server's.
  // Whether every model makes progress, whether the server is SERVING, and
  // whether it drains. All of them are quick and thread-safe.
  std::function<bool()> live = [] { return true; };
  std::function<bool()> ready = [] { return true; };
  std::function<bool()> draining = [] { return false; };
  // Loads and unloads models. Outlives the calls. Null: nothing does.
  admin::ModelChanges* changes = nullptr;
};

// The methods of the Open Inference Protocol, version 2, which is
// inference.GRPCInferenceService over gRPC. docs/clients.md says how its
// clients ask.
std::vector<call::Method> KserveMethods(const KserveOptions& options);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_KSERVE_METHODS_H_
