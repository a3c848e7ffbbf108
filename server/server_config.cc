#include "server/server_config.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/host/processors.h"
#include "server/host/topology.h"
#include "server/observability/log.h"
#include "server/observability/memory_limit.h"
#include "server/repository/model_name.h"
#include "server/settings/setting.h"
#include "server/settings/textproto.h"
#include "server/tracing/endpoint.h"

namespace sfmamba::server {
namespace {

constexpr size_t kMaxConfigBytes = 1 << 20;
// The minimum memory budget as a multiple of the maximum message size.
constexpr int64_t kMessagesOfBudget = 8;
// The default memory budget is at least kLeastMemory and at most kMostMemory,
// in bytes. It is larger than kMostMemory only if the user has set a
// max_message_bytes of more than kMostMemory / kMessagesOfBudget.
constexpr int64_t kLeastMemory = int64_t{64} << 20;
constexpr int64_t kMostMemory = int64_t{4} << 30;
// The default budget in bytes if the process's memory limit is unknown.
constexpr int64_t kSomeMemory = int64_t{512} << 20;
// The memory of a server without models, in bytes. 150 MiB were measured.
constexpr int64_t kProgram = int64_t{160} << 20;
// The default of max_client_items if there is a token file.
constexpr int kClientItems = 256;

// Checks that at least one model source is set, and that each model has an id
// and a folder.
absl::Status CheckModels(const v1::ServerConfig& config) {
  if (config.model_repository().empty() && config.model().empty()) {
    return absl::InvalidArgumentError(
        "model_repository: got none, expected a folder here or in model");
  }
  std::set<absl::string_view> ids;
  for (const std::string& model : config.model()) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(model, absl::MaxSplits('=', 1));
    if (!repository::IsId(parts.first) || parts.second.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model: got \"", model,
          "\", expected NAME=FOLDER, the name of at most "
          "128 characters [A-Za-z0-9._-] of which the first is a letter or a "
          "digit"));
    }
    if (!ids.insert(parts.first).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("model: got \"", parts.first, "\" twice"));
    }
  }
  return absl::OkStatus();
}

// Checks that each origin is "*" or has the form that browsers send, such as
// "https://example.com". This form contains no path.
absl::Status CheckOrigins(const v1::ServerConfig& config) {
  for (const std::string& origin : config.allowed_origins()) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(origin, absl::MaxSplits("://", 1));
    if (origin == "*" || (!parts.first.empty() && !parts.second.empty() &&
                          !absl::StrContains(parts.second, '/'))) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("allowed_origins: got \"", origin,
                     "\", expected * or an origin such as https://host or "
                     "http://host:8080, without a path"));
  }
  return absl::OkStatus();
}

// Checks that the TLS settings are complete or all unset.
absl::Status CheckTls(const v1::ServerConfig& c) {
  if (c.tls_cert_file().empty() != c.tls_key_file().empty()) {
    return absl::InvalidArgumentError(
        "tls_cert_file and tls_key_file: got one, expected both or neither");
  }
  if (c.tls_cert_file().empty() && !c.tls_client_ca_file().empty()) {
    return absl::InvalidArgumentError(
        "tls_client_ca_file: got it without tls_cert_file, expected both");
  }
  if (c.tls_client_ca_file().empty() && c.tls_client_optional()) {
    return absl::InvalidArgumentError(
        "tls_client_optional: got it without tls_client_ca_file, expected "
        "both");
  }
  return absl::OkStatus();
}

// Returns the default memory budget in bytes. If the process's memory limit is
// unknown, returns kSomeMemory. Otherwise computes the budget in these steps:
// 1. The budget is half of the limit.
// 2. If the budget exceeds 3/4 of the remaining memory, it is reduced to this
//    amount. The remaining memory is the limit minus the memory of the program,
//    the memory of the models and a reserve of 1/16 of the limit. Batches use
//    the other quarter of the remaining memory.
// 3. The result is clamped to the range from kLeastMemory to kMostMemory.
int64_t DefaultBudget(const ProcessMemory& memory) {
  if (memory.limit == 0) return kSomeMemory;
  const int64_t left =
      memory.limit - memory.limit / 16 - kProgram - memory.models;
  return std::clamp(std::min(memory.limit / 2, left / 4 * 3), kLeastMemory,
                    kMostMemory);
}

// Sets the defaults of server_config.proto and the default memory budgets. If
// the user has not set memory_budget_bytes, also reduces the default values of
// max_message_bytes and max_image_bytes so that they fit the budget.
void SetMemory(const ProcessMemory& memory, v1::ServerConfig* config) {
  const bool states_message = config->max_message_bytes() != 0;
  const bool states_image = config->max_image_bytes() != 0;
  SetDefaults(config);
  if (config->memory_budget_bytes() == 0) {
    int64_t budget = DefaultBudget(memory);
    if (states_message) {
      // Clamps the message size only for this calculation. Validate() later
      // refuses a size outside the range.
      budget = std::max(
          budget, kMessagesOfBudget * std::clamp(config->max_message_bytes(),
                                                 int64_t{0}, kMostMemory));
    }
    config->set_memory_budget_bytes(budget);
    if (!states_message) {
      config->set_max_message_bytes(
          std::min(config->max_message_bytes(), budget / kMessagesOfBudget));
    }
    if (!states_image) {
      config->set_max_image_bytes(
          std::min(config->max_image_bytes(), config->max_message_bytes()));
    }
  }
  if (config->decode_memory_budget_bytes() == 0) {
    config->set_decode_memory_budget_bytes(config->memory_budget_bytes() / 8 *
                                           3);
  }
}

}  // namespace

absl::StatusOr<v1::ServerConfig> ReadServerConfig(const std::string& path) {
  const std::string what = absl::StrCat("config: ", path);
  absl::StatusOr<std::string> text = ReadTextFile(what, path, kMaxConfigBytes);
  if (!text.ok()) return text.status();
  v1::ServerConfig config;
  const absl::Status status = ParseTextProto(what, *text, &config);
  if (!status.ok()) return status;
  return config;
}

ProcessMemory ThisProcessMemory() { return {observability::MemoryLimit(), 0}; }

absl::Status CheckMemory(const ProcessMemory& memory, bool default_budget,
                         const v1::ServerConfig& config) {
  // The memory of the program and the models is only estimated. A budget that
  // the user has set must not be refused because of an estimate. Such a budget
  // is therefore compared with the limit without adding the estimate.
  const int64_t others = default_budget ? kProgram + memory.models : 0;
  const int64_t needed = config.memory_budget_bytes() + others;
  if (memory.limit == 0 || needed <= memory.limit) return absl::OkStatus();
  const auto mib = [](int64_t bytes) {
    return absl::StrCat((bytes >> 20) + 1, " MiB");
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "memory_budget_bytes: got ", config.memory_budget_bytes(),
      others == 0 ? ""
                  : absl::StrCat(", beside about ", mib(others),
                                 " for the program and the models"),
      ", expected together at most ", memory.limit,
      ", the memory limit of the process; a limit of ",
      mib(needed + needed / 15), " would be enough"));
}

v1::ServerConfig WithDefaults(v1::ServerConfig config,
                              const ProcessMemory& memory) {
  const int processors = UsableProcessors();
  if (config.decode_threads() == 0) {
    config.set_decode_threads(std::max(1, processors - 2));
  }
  if (config.compute_threads() == 0) config.set_compute_threads(processors);
  if (config.cpu_contexts() == 0) {
    config.set_cpu_contexts(
        AutomaticContexts(AllowedTopology(), config.compute_threads()));
  }
  if (!config.has_max_client_items()) {
    config.set_max_client_items(config.token_file().empty() ? 0 : kClientItems);
  }
  SetMemory(memory, &config);
  return config;
}

absl::Status Validate(const v1::ServerConfig& c) {
  absl::Status status = CheckRanges(c);
  status.Update(observability::ParseLogLevels(c.log_level()).status());
  if (!c.trace_endpoint().empty()) {
    status.Update(tracing::CheckEndpoint(c.trace_endpoint()));
  }
  // Checks the file here, because gRPC would silently use the system's CAs if
  // it could not read the file.
  if (!c.trace_ca_file().empty()) {
    status.Update(
        ReadTextFile(absl::StrCat("trace_ca_file: \"", c.trace_ca_file(), "\""),
                     c.trace_ca_file(), kMaxConfigBytes)
            .status());
  }
  if (!status.ok()) return status;
  if (c.max_image_bytes() > c.max_message_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_image_bytes: got ", c.max_image_bytes(), ", expected at most ",
        c.max_message_bytes(), ", as max_message_bytes is"));
  }
  if (c.memory_budget_bytes() < kMessagesOfBudget * c.max_message_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "memory_budget_bytes: got ", c.memory_budget_bytes(),
        ", expected at least ", kMessagesOfBudget * c.max_message_bytes(), ", ",
        kMessagesOfBudget, " times max_message_bytes"));
  }
  if (c.decode_memory_budget_bytes() > c.memory_budget_bytes() / 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "decode_memory_budget_bytes: got ", c.decode_memory_budget_bytes(),
        ", expected at most ", c.memory_budget_bytes() / 2,
        ", half of memory_budget_bytes"));
  }
  if (c.device() == "cpu" && !c.gpus().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("gpus: got ", absl::StrJoin(c.gpus(), ","),
                     ", expected none with the device cpu"));
  }
  status =
      CheckContexts(AllowedTopology(), c.cpu_contexts(), c.compute_threads());
  if (!status.ok()) return status;
  status = CheckModels(c);
  if (!status.ok()) return status;
  status = CheckTls(c);
  if (!status.ok()) return status;
  status = CheckOrigins(c);
  if (!status.ok()) return status;
  if (!c.startup_models().empty() &&
      !absl::StrContains(c.model_control(), "explicit")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "startup_models: got \"", c.startup_models(),
        "\" with the model_control \"", c.model_control(),
        "\", expected none, or \"explicit\" or \"poll+explicit\""));
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::server
