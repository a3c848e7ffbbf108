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

// Returns what the log calls a caller that may administer. `peer` is as gRPC
// writes it.
std::string WhoIs(const security::Caller& caller, const std::string& peer);

// The model that "{id}" or "models/{id}" names, or the version that
// "models/{id}/versions/{n}" names. It need not exist.
struct Target {
  std::string id;
  std::optional<int64_t> version;
};
// Parses a Target. INVALID_ARGUMENT with field `field` if `name` has another
// form. NOT_FOUND if {n} is not the number of any version.
absl::StatusOr<Target> ParseTarget(absl::string_view name,
                                   absl::string_view field);

// Changes models for callers that may administer. Logs each change with its
// outcome and with `who` asked for it: see WhoIs(). The methods do what
// ModelRepository's methods do.
//
// Thread-safe. A load or unload may end after this is gone.
class ModelChanges {
 public:
  // `call` is called once, when the change has ended. `has_gone` says whether
  // the caller no longer waits for it.
  struct Done {
    template <typename Fn>
    Done(
        Fn fn, std::function<bool()> gone = [] { return false; })
        : call(std::move(fn)), has_gone(std::move(gone)) {}
    void operator()(const absl::Status& status) const { call(status); }

    repository::ModelRepository::Done call;
    std::function<bool()> has_gone;
  };

  // Both outlive this, and `log` also outlives the repository.
  ModelChanges(repository::ModelRepository* repository,
               observability::Logger* log)
      : repository_(*repository), log_(*log) {}

  // From now on changes of models are refused: UNAVAILABLE with reason
  // DRAINING.
  void StartDraining() { draining_.store(true); }

  // `name` is a Target, and `field` the request's field that has it. A load
  // ends with CANCELLED once its caller has gone.
  void Load(const std::string& who, absl::string_view name,
            absl::string_view field, std::optional<v1::Batching> batching,
            Done done);
  void Unload(const std::string& who, absl::string_view name,
              absl::string_view field, Done done);

  // `model` is a Target without a version, in field "model". With version 0 the
  // label is removed.
  absl::Status SetLabel(const std::string& who, absl::string_view model,
                        const std::string& label, int64_t version);

  // Logs another change, such as "settings".
  void Log(const std::string& who, absl::string_view action,
           absl::string_view what, const absl::Status& status) const;

 private:
  // ParseTarget(), unless the server drains.
  absl::StatusOr<Target> TargetOf(absl::string_view name,
                                  absl::string_view field) const;
  // Returns a callback that logs the change, then calls `done`.
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
