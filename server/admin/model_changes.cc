#include "server/admin/model_changes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"
#include "server/repository/model_name.h"
#include "server/settings/setting.h"

namespace sfmamba::admin {
namespace {

// Most bytes of a name that are logged: names are the callers', of any length.
constexpr size_t kMaxNameShown = 200;

void WriteLine(const std::string& caller, absl::string_view action,
               absl::string_view what, const absl::Status& status,
               observability::Logger* log) {
  log->Info(observability::LogModule::kServer, "administration",
            {{"action", action},
             {"what", what.substr(0, kMaxNameShown)},
             {"caller", caller},
             {"code", absl::StatusCodeToString(status.code())},
             {"reason", server::GetErrorDetail(status).reason},
             {"error", status.message()}});
}

// Names a caller in the log, also one that may not administer.
std::string NameOf(const Caller& caller,
                   const absl::StatusOr<std::string>& name) {
  return name.ok() && !name->empty() ? absl::StrCat(*name, " at ", caller.peer)
                                     : caller.peer;
}

}  // namespace

absl::StatusOr<Target> ParseTarget(absl::string_view name,
                                   absl::string_view field) {
  absl::StatusOr<repository::ModelName> parsed =
      repository::ParseModelName(name, field);
  if (!parsed.ok()) return parsed.status();
  if (!parsed->label.empty()) {
    return server::WrongText(field, name,
                             "{id}, models/{id} or models/{id}/versions/{n}");
  }
  Target target = {std::move(parsed->id), std::nullopt};
  if (parsed->version != 0) target.version = parsed->version;
  return target;
}

ModelChanges::Done ModelChanges::Logged(const Caller& caller,
                                        absl::string_view action,
                                        absl::string_view name,
                                        Done done) const {
  // The log is captured, not this: a load may end after this is gone.
  return [log = &log_, who = NameOf(caller, allow_(caller)),
          action = std::string(action),
          name = std::string(name.substr(0, kMaxNameShown)),
          done = std::move(done)](const absl::Status& status) {
    WriteLine(who, action, name, status, log);
    done(status);
  };
}

void ModelChanges::Log(const Caller& caller, absl::string_view action,
                       absl::string_view what,
                       const absl::Status& status) const {
  WriteLine(NameOf(caller, allow_(caller)), action, what, status, &log_);
}

void ModelChanges::Load(const Caller& caller, absl::string_view name,
                        absl::string_view field,
                        std::optional<v1::Batching> batching, Done done) {
  // Before the check, so that refused changes are logged too.
  Done logged = Logged(caller, "load", name, std::move(done));
  const absl::Status allowed = Check(caller);
  if (!allowed.ok()) return logged(allowed);
  absl::StatusOr<Target> target = ParseTarget(name, field);
  if (!target.ok()) return logged(target.status());
  if (batching.has_value()) {
    const absl::Status status = server::CheckRanges(*batching);
    if (!status.ok()) {
      return logged(server::InvalidField("batching", status.message()));
    }
  }
  repository_.LoadModel(target->id, {target->version, std::move(batching)},
                        std::move(logged));
}

void ModelChanges::Unload(const Caller& caller, absl::string_view name,
                          absl::string_view field, Done done) {
  Done logged = Logged(caller, "unload", name, std::move(done));
  const absl::Status allowed = Check(caller);
  if (!allowed.ok()) return logged(allowed);
  absl::StatusOr<Target> target = ParseTarget(name, field);
  if (!target.ok()) return logged(target.status());
  repository_.UnloadModel(target->id, target->version, std::move(logged));
}

absl::StatusOr<std::string> ModelChanges::ModelOf(
    const Caller& caller, absl::string_view model) const {
  const absl::Status allowed = Check(caller);
  if (!allowed.ok()) return allowed;
  absl::StatusOr<Target> target = ParseTarget(model, "model");
  if (!target.ok()) return target.status();
  if (target->version.has_value()) {
    return server::WrongText("model", model, "{id} or models/{id}");
  }
  return std::move(target->id);
}

absl::Status ModelChanges::SetLabel(const Caller& caller,
                                    absl::string_view model,
                                    const std::string& label,
                                    std::optional<int64_t> version) {
  const absl::StatusOr<std::string> id = ModelOf(caller, model);
  const absl::Status status =
      id.ok() ? repository_.SetLabel(*id, label, version) : id.status();
  Log(caller, "label",
      absl::StrCat(model.substr(0, kMaxNameShown / 2), " ",
                   label.substr(0, kMaxNameShown / 4), " ",
                   version.has_value() ? absl::StrCat(*version) : "none"),
      status);
  return status;
}

absl::Status ModelChanges::SetCanaryShare(const Caller& caller,
                                          absl::string_view model,
                                          int percent) {
  const absl::StatusOr<std::string> id = ModelOf(caller, model);
  const absl::Status status =
      id.ok() ? repository_.SetCanaryShare(*id, percent) : id.status();
  Log(caller, "canary",
      absl::StrCat(model.substr(0, kMaxNameShown / 2), " ", percent), status);
  return status;
}

}  // namespace sfmamba::admin
