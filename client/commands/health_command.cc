#include "client/commands/health_command.h"

#include "client/rpc/vision_client.h"

namespace sfmamba::client {

int RunHealth(const std::vector<std::string>& arguments,
              const Console& console) {
  using grpc::health::v1::HealthCheckResponse;
  CommonFlags common;
  std::string service;
  FlagSet flags("sfmamba health [flags]",
                "Asks whether the server serves: exit code 0 if so, else 1.");
  common.AddTo(&flags);
  flags.Add("service", "NAME",
            "service or model to ask about; empty: the server as a whole",
            &service);
  std::vector<std::string> surplus;
  if (const auto exit = ParseArguments(&flags, arguments, &surplus, console)) {
    return *exit;
  }
  if (!surplus.empty()) {
    return UsageError("health takes no argument; see --service", console);
  }
  VisionClient client(common.server, common.client);
  const absl::StatusOr<VisionClient::ServingStatus> status =
      client.CheckHealth(service, common.deadline);
  if (!status.ok()) return RpcError(status.status(), common, console);
  const std::string name = HealthCheckResponse::ServingStatus_Name(*status);
  if (common.json) {
    JsonWriter json;
    json.BeginObject().Key("service").String(service);
    console.out << json.Key("status").String(name).EndObject().text() << "\n";
  } else {
    console.out << name << "\n";
  }
  return *status == HealthCheckResponse::SERVING ? kExitOk : kExitRpcError;
}

}  // namespace sfmamba::client
