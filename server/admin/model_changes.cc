#include "server/admin/model_changes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"
#include "server/repository/model_name.h"
#include "server/settings/setting.h"

namespace sfmamba::admin {
namespace {

// The maximum number of bytes of a model's name in the log. Callers may send
// names of any length.
constexpr size_t kMaxNameShown = 200;

void WriteLine(const std::string& who, absl::string_view action,
               absl::string_view what, const absl::Status& status,
               observability::Logger* log) {
  log->Info(observability::LogModule::kServer, "administration",
            {{"action", action},
             {"what", what.substr(0, kMaxNameShown)},
             {"caller", who},
             {"code", absl::StatusCodeToString(status.code())},
             {"reason", server::GetErrorDetail(status).reason},
             {"error", status.message()}});
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

std::string WhoIs(const security::Caller& caller, const std::string& peer) {
  return caller.has_token ? absl::StrCat(caller.name, " at ", peer) : peer;
}

absl::StatusOr<Target> ModelChanges::TargetOf(absl::string_view name,
                                              absl::string_view field) const {
  if (draining_.load()) return server::Draining("the server");
  return ParseTarget(name, field);
}

repository::ModelRepository::Done ModelChanges::Logged(const std::string& who,
                                                       absl::string_view action,
                                                       absl::string_view name,
                                                       Done done) const {
  // The callback must not capture `this`, because a load may end after this
  // object is destroyed. The logger outlives this object. The member log_ is a
  // reference, so `&log_` is the address of the logger itself.
  return [log = &log_, who, action = std::string(action),
          name = std::string(name.substr(0, kMaxNameShown)),
          done = std::move(done)](const absl::Status& status) {
    WriteLine(who, action, name, status, log);
    done(status);
  };
}

void ModelChanges::Log(const std::string& who, absl::string_view action,
                       absl::string_view what,
                       const absl::Status& status) const {
  WriteLine(who, action, what, status, &log_);
}

void ModelChanges::Load(const std::string& who, absl::string_view name,
                        absl::string_view field,
                        std::optional<v1::Batching> batching, Done done) {
  const std::function<bool()> cancelled = done.has_gone;
  const auto logged = Logged(who, "load", name, std::move(done));
  absl::StatusOr<Target> target = TargetOf(name, field);
  if (!target.ok()) return logged(target.status());
  if (batching.has_value()) {
    const absl::Status status = server::CheckRanges(*batching);
    if (!status.ok()) {
      return logged(server::InvalidField("batching", status.message()));
    }
  }
  repository_.LoadModel(
      target->id, {target->version, std::move(batching), cancelled}, logged);
}

void ModelChanges::Unload(const std::string& who, absl::string_view name,
                          absl::string_view field, Done done) {
  const auto logged = Logged(who, "unload", name, std::move(done));
  absl::StatusOr<Target> target = TargetOf(name, field);
  if (!target.ok()) return logged(target.status());
  repository_.UnloadModel(target->id, target->version, logged);
}

absl::Status ModelChanges::SetLabel(const std::string& who,
                                    absl::string_view model,
                                    const std::string& label, int64_t version) {
  const absl::StatusOr<Target> target = TargetOf(model, "model");
  absl::Status status = target.status();
  if (status.ok() && target->version.has_value()) {
    status = server::WrongText("model", model, "{id} or models/{id}");
  }
  if (version < 0) {
    status.Update(server::InvalidField(
        "version", absl::StrCat("got ", version, ", expected 0 or more")));
  }
  if (status.ok()) {
    status = repository_.SetLabel(
        target->id, label,
        version == 0 ? std::nullopt : std::make_optional(version));
  }
  Log(who, "label",
      absl::StrCat(model.substr(0, kMaxNameShown / 2), " ",
                   label.substr(0, kMaxNameShown / 4), " ",
                   version == 0 ? "none" : absl::StrCat(version)),
      status);
  return status;
}

}  // namespace sfmamba::admin
