#ifndef SFMAMBA_SERVER_ADMIN_MODEL_CHANGES_H_
#define SFMAMBA_SERVER_ADMIN_MODEL_CHANGES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/observability/log.h"
#include "server/repository/model_repository.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::admin {

// The client that asks for a change, over any transport.
struct Caller {
  std::string peer;           // In gRPC's form: "ipv4:10.0.0.7:41234".
  std::string authorization;  // The header of that name; may be empty.
};

// Returns the name, for the log, of a caller that may administer, or the error
// that the caller gets.
using Allow = std::function<absl::StatusOr<std::string>(const Caller&)>;

// The model, and the version of it if there is one, that "{id}", "models/{id}"
// or "models/{id}/versions/{n}" means, whether it is there or not.
struct Target {
  std::string id;
  std::optional<int64_t> version;
};
// INVALID_ARGUMENT with field `field`, or NOT_FOUND for what no version is
// called.
absl::StatusOr<Target> ParseTarget(absl::string_view name,
                                   absl::string_view field);

// Changes models at the request of outside callers: checks each with `allow`
// and logs the caller, the change and its outcome. The methods do what
// ModelRepository's methods do.
//
// Thread-safe. A load or unload may end after this is gone.
class ModelChanges {
 public:
  using Done = repository::ModelRepository::Done;

  // All arguments outlive this, and `log` also outlives the repository.
  ModelChanges(repository::ModelRepository* repository,
               observability::Logger* log, Allow allow)
      : repository_(*repository), log_(*log), allow_(std::move(allow)) {}

  // UNAUTHENTICATED or PERMISSION_DENIED if the caller may not administer. The
  // methods below check it themselves.
  absl::Status Check(const Caller& caller) const {
    return allow_(caller).status();
  }

  // `name` is a Target, which is in field `field`.
  void Load(const Caller& caller, absl::string_view name,
            absl::string_view field, std::optional<v1::Batching> batching,
            Done done);
  void Unload(const Caller& caller, absl::string_view name,
              absl::string_view field, Done done);

  // `model` is a Target without a version, in field "model".
  absl::Status SetLabel(const Caller& caller, absl::string_view model,
                        const std::string& label,
                        std::optional<int64_t> version);
  absl::Status SetCanaryShare(const Caller& caller, absl::string_view model,
                              int percent);

  // Writes the line of something else that was asked for, such as "settings".
  void Log(const Caller& caller, absl::string_view action,
           absl::string_view what, const absl::Status& status) const;

 private:
  // `done`, with the line of the log before it.
  Done Logged(const Caller& caller, absl::string_view action,
              absl::string_view name, Done done) const;
  // The id that `model` means, for a caller that may change it.
  absl::StatusOr<std::string> ModelOf(const Caller& caller,
                                      absl::string_view model) const;

  repository::ModelRepository& repository_;
  observability::Logger& log_;
  const Allow allow_;
};

}  // namespace sfmamba::admin

#endif  // SFMAMBA_SERVER_ADMIN_MODEL_CHANGES_H_
