#include "server/kserve/repository_control.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"
#include "inference/model_config.pb.h"
#include "server/errors/reasons.h"
#include "server/kserve/published_model.h"

namespace sfmamba::kserve {
namespace {

constexpr char kExpected[] =
    "expected max_batch_size, dynamic_batching.max_queue_delay_microseconds "
    "and dynamic_batching.default_queue_policy.max_queue_size only";
constexpr absl::string_view kMayBeSet[] = {
    "name",
    "max_batch_size",
    "dynamic_batching",
    "dynamic_batching.max_queue_delay_microseconds",
    "dynamic_batching.default_queue_policy",
    "dynamic_batching.default_queue_policy.max_queue_size",
};
constexpr size_t kMaxKeyShown = 60;

std::string FieldOf(absl::string_view key) {
  return absl::StrCat("parameters[\"", key.substr(0, kMaxKeyShown), "\"]");
}

absl::Status UnknownParameter(absl::string_view key,
                              absl::string_view expected) {
  return server::InvalidField(FieldOf(key), expected);
}

bool MayBeSet(absl::string_view path) {
  for (const absl::string_view field : kMayBeSet) {
    if (field == path) return true;
  }
  return false;
}

// Returns the first field, with `prefix` before it, that is set and must not
// be, or "". A silently ignored setting would mislead.
std::string FindSurplus(const std::string& prefix,
                        const google::protobuf::Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    const std::string path = absl::StrCat(prefix, field->name());
    if (!MayBeSet(path)) return path;
    if (field->message_type() == nullptr) continue;
    const std::string inner =
        FindSurplus(path + ".", reflection.GetMessage(message, field));
    if (!inner.empty()) return inner;
  }
  return "";
}

absl::StatusOr<v1::Batching> ReadConfig(const std::string& model,
                                        const std::string& json) {
  const std::string field = FieldOf("config");
  inference::ModelConfig config;
  if (!google::protobuf::util::JsonStringToMessage(json, &config).ok()) {
    return server::InvalidField(
        field, absl::StrCat("got no JSON of a ModelConfig, ", kExpected));
  }
  const std::string surplus = FindSurplus("", config);
  if (!surplus.empty()) {
    return server::InvalidField(absl::StrCat(field, ".", surplus), kExpected);
  }
  if (!config.name().empty() && config.name() != model) {
    return server::InvalidField(
        absl::StrCat(field, ".name"),
        "expected none, or the name of the model that is loaded");
  }
  const inference::ModelDynamicBatching& dynamic = config.dynamic_batching();
  v1::Batching batching;
  batching.set_max_batch_size(config.max_batch_size());
  const uint64_t items = dynamic.default_queue_policy().max_queue_size();
  if (items > std::numeric_limits<int32_t>::max()) {
    return server::InvalidField(
        absl::StrCat(field,
                     ".dynamic_batching.default_queue_policy.max_queue_size"),
        absl::StrCat("got ", items, ", expected less"));
  }
  batching.set_max_queue_items(static_cast<int32_t>(items));
  const uint64_t delay = dynamic.max_queue_delay_microseconds();
  if (delay >
      static_cast<uint64_t>(absl::ToInt64Microseconds(absl::Hours(24)))) {
    return server::InvalidField(
        absl::StrCat(field, ".dynamic_batching.max_queue_delay_microseconds"),
        absl::StrCat("got ", delay, ", expected at most a day"));
  }
  if (delay > 0) {
    base::ToProto(absl::Microseconds(delay),
                  batching.mutable_max_queue_delay());
  }
  return batching;
}

}  // namespace

absl::Status RepositoryControl::Check() const {
  return changes_ == nullptr ? server::ModelControlOff() : absl::OkStatus();
}

template <typename Request>
absl::StatusOr<std::string> RepositoryControl::ModelOf(
    const Request& request) const {
  if (!request.repository_name().empty()) {
    return server::WrongText("repository_name", request.repository_name(),
                             "none: there is one repository");
  }
  const std::string& name = request.model_name();
  if (name.empty()) {
    return server::InvalidField("model_name",
                                "got no name, expected a model's");
  }
  if (absl::StrContains(name, '/')) return server::ModelNotFound(name);
  // A model's second name means the model.
  const auto found = FindModel(env_, name, /*version=*/"", "model_name");
  return found.ok() ? found->version->id() : name;
}

void RepositoryControl::Load(
    const std::string& who,
    const inference::RepositoryModelLoadRequest& request, Done done) {
  const absl::StatusOr<std::string> model = ModelOf(request);
  absl::StatusOr<std::optional<v1::Batching>> batching =
      ReadLoadParameters(request);
  absl::Status status = model.status();
  status.Update(batching.status());
  if (!status.ok()) {
    changes_->Log(who, "load", request.model_name(), status);
    return done(status);
  }
  changes_->Load(who, *model, "model_name", *std::move(batching),
                 std::move(done));
}

void RepositoryControl::Unload(
    const std::string& who,
    const inference::RepositoryModelUnloadRequest& request, Done done) {
  const absl::StatusOr<std::string> model = ModelOf(request);
  absl::Status status = model.status();
  status.Update(CheckUnloadParameters(request));
  if (!status.ok()) {
    changes_->Log(who, "unload", request.model_name(), status);
    return done(status);
  }
  changes_->Unload(who, *model, "model_name", std::move(done));
}

absl::StatusOr<std::optional<v1::Batching>> ReadLoadParameters(
    const inference::RepositoryModelLoadRequest& request) {
  std::optional<v1::Batching> batching;
  for (const auto& [key, value] : request.parameters()) {
    if (absl::StartsWith(key, "file:")) {
      return server::NotSupported("files that come with a request to load");
    }
    if (key != "config") {
      return UnknownParameter(key, "expected the parameter config only");
    }
    if (!value.has_string_param()) {
      return server::InvalidField(FieldOf(key), "expected a string");
    }
    absl::StatusOr<v1::Batching> config =
        ReadConfig(request.model_name(), value.string_param());
    if (!config.ok()) return config.status();
    batching = *std::move(config);
  }
  return batching;
}

absl::Status CheckUnloadParameters(
    const inference::RepositoryModelUnloadRequest& request) {
  for (const auto& [key, value] : request.parameters()) {
    if (key != "unload_dependents") {
      return UnknownParameter(key,
                              "expected the parameter unload_dependents only");
    }
    if (!value.has_bool_param()) {
      return server::InvalidField(FieldOf(key), "expected a boolean");
    }
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::kserve
