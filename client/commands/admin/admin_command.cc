#include "client/commands/admin/admin_command.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "base/proto_duration.h"
#include "client/commands/admin/server_info.h"
#include "client/commands/output/message_json.h"
#include "client/commands/output/model_table.h"
#include "client/rpc/vision_client.h"

namespace sfmamba::client {
namespace {

// This is long, because loading reads, checks and measures a model.
constexpr absl::Duration kDefaultDeadline = absl::Minutes(5);

using Arguments = std::vector<std::string>;

// The values of the flags of all actions.
struct AdminFlags {
  CommonFlags common;
  int max_batch_size = 0;
  absl::optional<double> queue_delay_ms;
  int max_queue_items = 0;
  std::string log_level;
  absl::optional<double> trace_ratio;
  std::string model;
  int64_t max_queue_bytes = 0;
};

struct Action {
  const char* name;
  const char* usage;
  const char* description;
  size_t arguments;
  void (*add_flags)(FlagSet* flags, AdminFlags* values);
  int (*run)(const Arguments& arguments, const AdminFlags& flags,
             const Console& console);
};

// Shows the versions that exist after a change, or the error of the change.
template <typename Response>
int ShowVersions(const absl::StatusOr<Response>& response,
                 const AdminFlags& flags, const Console& console) {
  if (!response.ok()) return RpcError(response.status(), flags.common, console);
  if (flags.common.json) {
    console.out << MessageJson(*response);
  } else {
    console.out << ModelTable(
        {response->versions().begin(), response->versions().end()});
  }
  return kExitOk;
}

void NoFlags(FlagSet* /*flags*/, AdminFlags* /*values*/) {}

void LoadFlags(FlagSet* flags, AdminFlags* values) {
  flags->Add("max_batch_size", "N", "in place of the model's own",
             &values->max_batch_size);
  flags->Add("queue_delay_ms", "MS", "in place of the model's max_queue_delay",
             &values->queue_delay_ms);
  flags->Add("max_queue_items", "N", "in place of the model's own",
             &values->max_queue_items);
}

int Load(const Arguments& arguments, const AdminFlags& flags,
         const Console& console) {
  v1::LoadModelRequest request;
  request.set_name(arguments[0]);
  v1::Batching* batching = request.mutable_batching();
  batching->set_max_batch_size(flags.max_batch_size);
  batching->set_max_queue_items(flags.max_queue_items);
  if (flags.queue_delay_ms.has_value()) {
    base::ToProto(absl::Milliseconds(*flags.queue_delay_ms),
                  batching->mutable_max_queue_delay());
  }
  if (batching->ByteSizeLong() == 0) request.clear_batching();
  VisionClient client(flags.common.server, flags.common.client);
  return ShowVersions(client.LoadModel(request, flags.common.deadline), flags,
                      console);
}

int Unload(const Arguments& arguments, const AdminFlags& flags,
           const Console& console) {
  v1::UnloadModelRequest request;
  request.set_name(arguments[0]);
  VisionClient client(flags.common.server, flags.common.client);
  return ShowVersions(client.UnloadModel(request, flags.common.deadline), flags,
                      console);
}

int Label(const Arguments& arguments, const AdminFlags& flags,
          const Console& console) {
  v1::SetVersionLabelRequest request;
  request.set_model(arguments[0]);
  request.set_label(arguments[1]);
  int64_t version = 0;
  if (arguments[2] != "none" &&
      (!absl::SimpleAtoi(arguments[2], &version) || version <= 0)) {
    return UsageError(absl::StrCat("version: got '", arguments[2],
                                   "', expected a positive number or none"),
                      console);
  }
  request.set_version(version);
  VisionClient client(flags.common.server, flags.common.client);
  return ShowVersions(client.SetVersionLabel(request, flags.common.deadline),
                      flags, console);
}

int Info(const Arguments& /*arguments*/, const AdminFlags& flags,
         const Console& console) {
  VisionClient client(flags.common.server, flags.common.client);
  const absl::StatusOr<v1::ServerInfo> info =
      client.GetServerInfo(flags.common.deadline);
  if (!info.ok()) return RpcError(info.status(), flags.common, console);
  console.out << (flags.common.json ? MessageJson(*info)
                                    : DescribeServer(*info));
  return kExitOk;
}

void SettingsFlags(FlagSet* flags, AdminFlags* values) {
  flags->Add("log_level", "LEVEL", "as the server's setting of that name",
             &values->log_level);
  flags->Add("trace_ratio", "RATIO",
             "part, 0 to 1, of the requests without a trace that are traced",
             &values->trace_ratio);
  flags->Add("model", "NAME",
             "whose queue gets other limits, a model or a version, until it is "
             "loaded again",
             &values->model);
  flags->Add("max_queue_items", "N", "images that may wait for --model",
             &values->max_queue_items);
  flags->Add("max_queue_bytes", "N", "memory that they may take",
             &values->max_queue_bytes);
}

int Settings(const Arguments& /*arguments*/, const AdminFlags& flags,
             const Console& console) {
  v1::UpdateRuntimeSettingsRequest request;
  if (!flags.log_level.empty()) request.set_log_level(flags.log_level);
  if (flags.trace_ratio.has_value()) {
    request.set_trace_ratio(*flags.trace_ratio);
  }
  const bool limits = flags.max_queue_items != 0 || flags.max_queue_bytes != 0;
  if (limits != !flags.model.empty()) {
    return UsageError(
        "model: expected together with max_queue_items or max_queue_bytes",
        console);
  }
  if (limits) {
    v1::QueueLimits* queue = request.add_queues();
    queue->set_model(flags.model);
    queue->set_max_queue_items(flags.max_queue_items);
    queue->set_max_queue_bytes(flags.max_queue_bytes);
  }
  VisionClient client(flags.common.server, flags.common.client);
  const absl::StatusOr<v1::RuntimeSettings> settings =
      client.UpdateRuntimeSettings(request, flags.common.deadline);
  if (!settings.ok()) return RpcError(settings.status(), flags.common, console);
  console.out << (flags.common.json ? MessageJson(*settings)
                                    : DescribeSettings(*settings));
  return kExitOk;
}

constexpr Action kActions[] = {
    {"load", "NAME [flags]",
     "Loads what the version policy of model NAME wants, or the version "
     "models/ID/versions/N, and waits until it serves.",
     1, LoadFlags, Load},
    {"unload", "NAME [flags]",
     "Stops serving model NAME, or the version models/ID/versions/N.", 1,
     NoFlags, Unload},
    {"label", "ID LABEL VERSION [flags]",
     "Moves a label of a model, such as stable or canary, to a version; none "
     "takes it away.",
     3, NoFlags, Label},
    {"info", "[flags]", "Tells what the server is, and what it serves.", 0,
     NoFlags, Info},
    {"settings", "[flags]",
     "Changes settings of the running server, and tells what they are.", 0,
     SettingsFlags, Settings},
};

std::string Help() {
  std::string text = "usage: sfmamba admin ACTION [ARGUMENT...] [flags]\n\n";
  for (const Action& action : kActions) {
    absl::StrAppendFormat(&text, "  %-30s  %s\n",
                          absl::StrCat(action.name, " ", action.usage),
                          action.description);
  }
  return text + "\n'sfmamba admin ACTION --help' lists the flags\n";
}

int Run(const Action& action, const Arguments& arguments,
        const Console& console) {
  AdminFlags values;
  values.common.deadline = kDefaultDeadline;
  FlagSet flags(absl::StrCat("sfmamba admin ", action.name, " ", action.usage),
                action.description);
  values.common.AddTo(&flags);
  action.add_flags(&flags, &values);
  Arguments positional;
  if (const auto exit =
          ParseArguments(&flags, arguments, &positional, console)) {
    return *exit;
  }
  if (positional.size() != action.arguments) {
    return UsageError(
        absl::StrCat("admin ", action.name, ": got ", positional.size(),
                     " arguments, expected ", action.arguments),
        console);
  }
  return action.run(positional, values, console);
}

}  // namespace

int RunAdmin(const std::vector<std::string>& arguments,
             const Console& console) {
  if (arguments.empty()) {
    console.err << Help();
    return kExitUsage;
  }
  if (arguments[0] == "--help" || arguments[0] == "-h") {
    console.out << Help();
    return kExitOk;
  }
  for (const Action& action : kActions) {
    if (arguments[0] == action.name) {
      return Run(action, {arguments.begin() + 1, arguments.end()}, console);
    }
  }
  return UsageError(absl::StrCat("admin: no action '", arguments[0],
                                 "'; 'sfmamba admin --help' lists them"),
                    console);
}

}  // namespace sfmamba::client
