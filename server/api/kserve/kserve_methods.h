#ifndef SFMAMBA_SERVER_API_KSERVE_KSERVE_METHODS_H_
#define SFMAMBA_SERVER_API_KSERVE_KSERVE_METHODS_H_

#include <functional>
#include <string>
#include <vector>

#include "server/admin/model_changes.h"
#include "server/call/method_table.h"

namespace sfmamba::kserve {

struct KserveOptions {
  std::string version;  // The server's version.
  // `live` returns false if a batch of a model hangs, or if the device of a
  // model has failed permanently. `ready` returns true if the server is
  // SERVING. `draining` returns true if the server drains. All functions must
  // be fast and thread-safe.
  std::function<bool()> live = [] { return true; };
  std::function<bool()> ready = [] { return true; };
  std::function<bool()> draining = [] { return false; };
  // Loads and unloads models. Must outlive the calls. If null, models cannot be
  // loaded or unloaded.
  admin::ModelChanges* changes = nullptr;
};

// Returns the methods of the Open Inference Protocol, version 2. Over gRPC, the
// methods form inference.GRPCInferenceService. See docs/clients.md for clients.
std::vector<call::Method> KserveMethods(const KserveOptions& options);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_KSERVE_METHODS_H_
