#ifndef SFMAMBA_SERVER_ADMIN_MODEL_CHANGES_H_
#define SFMAMBA_SERVER_ADMIN_MODEL_CHANGES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/observability/log.h"
#include "server/repository/model_repository.h"
#include "server/security/caller.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::admin {

// Returns the name of a caller for the log. If the caller has a token, this is
// "NAME at PEER". Otherwise it is only `peer`, which is in gRPC's notation,
// such as "ipv4:127.0.0.1:5000".
std::string WhoIs(const security::Caller& caller, const std::string& peer);

// The parsed name of a model or of one version of a model. A model is named
// "{id}" or "models/{id}". A version is named "models/{id}/versions/{n}". The
// model or version need not exist.
struct Target {
  std::string id;
  std::optional<int64_t> version;
};
// Parses the name of a model or version (see Target). If `name` does not have
// one of the forms of a Target, returns INVALID_ARGUMENT with field `field`. If
// {n} is not a version number, returns NOT_FOUND.
absl::StatusOr<Target> ParseTarget(absl::string_view name,
                                   absl::string_view field);

// Loads, unloads and labels models for callers that have the scope admin. Logs
// each change with its outcome and its caller `who` (see WhoIs()). Load(),
// Unload() and SetLabel() change models through the methods LoadModel(),
// UnloadModel() and SetLabel() of ModelRepository.
//
// Thread-safe. A load or unload may end after this object is destroyed.
class ModelChanges {
 public:
  // The callbacks of a change. `call` is called once, when the change has
  // ended. `has_gone` returns true if the caller no longer waits for the
  // change.
  struct Done {
    template <typename Fn>
    Done(
        Fn fn, std::function<bool()> gone = [] { return false; })
        : call(std::move(fn)), has_gone(std::move(gone)) {}
    void operator()(const absl::Status& status) const { call(status); }

    repository::ModelRepository::Done call;
    std::function<bool()> has_gone;
  };

  // `repository` and `log` must outlive this object. `log` must also outlive
  // the repository.
  ModelChanges(repository::ModelRepository* repository,
               observability::Logger* log)
      : repository_(*repository), log_(*log) {}

  // Makes every later change fail with UNAVAILABLE and reason DRAINING.
  void StartDraining() { draining_.store(true); }

  // Load() loads and Unload() unloads a model or a version. `name` is its name
  // (see Target). `field` is the field of the request that contains `name`.
  // `done` receives the result. If the caller disconnects, a load ends with
  // CANCELLED. An unload continues in this case.
  //
  // If `batching` has a value, the fields that are set in `batching` replace
  // the batching fields of the version's config.textproto. They stay in effect
  // until the version is loaded again.
  void Load(const std::string& who, absl::string_view name,
            absl::string_view field, std::optional<v1::Batching> batching,
            Done done);
  void Unload(const std::string& who, absl::string_view name,
              absl::string_view field, Done done);

  // Moves the label `label` of a model to the version `version`. The label then
  // selects this version. Removes the label if `version` is 0. `model` is the
  // name of the model without a version (see Target). If `model` is malformed,
  // the error names the field "model".
  absl::Status SetLabel(const std::string& who, absl::string_view model,
                        const std::string& label, int64_t version);

  // Logs a change that is not made through this object, or a change that failed
  // before it began. `action` is the kind of change, such as "settings" or
  // "load". `what` is the object of the change, such as a model's name.
  void Log(const std::string& who, absl::string_view action,
           absl::string_view what, const absl::Status& status) const;

 private:
  // Returns the result of ParseTarget(). If the server drains, returns
  // UNAVAILABLE instead.
  absl::StatusOr<Target> TargetOf(absl::string_view name,
                                  absl::string_view field) const;
  // Returns a callback that logs the change and then calls `done`.
  repository::ModelRepository::Done Logged(const std::string& who,
                                           absl::string_view action,
                                           absl::string_view name,
                                           Done done) const;

  repository::ModelRepository& repository_;
  observability::Logger& log_;
  std::atomic<bool> draining_{false};
};

}  // namespace sfmamba::admin

#endif  // SFMAMBA_SERVER_ADMIN_MODEL_CHANGES_H_
