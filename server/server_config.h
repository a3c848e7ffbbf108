#ifndef SFMAMBA_SERVER_SERVER_CONFIG_H_
#define SFMAMBA_SERVER_SERVER_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// Reads a ServerConfig in text format. Returns INVALID_ARGUMENT with line and
// column if a field is unknown or a value is wrong.
absl::StatusOr<v1::ServerConfig> ReadServerConfig(const std::string& path);

// The memory of this process, in bytes.
struct ProcessMemory {
  int64_t limit = 0;   // 0 if the limit is unknown.
  int64_t models = 0;  // The estimated memory that all models need.
};
// Returns the memory limit of this process. Does not estimate `models`.
ProcessMemory ThisProcessMemory();

// Returns `config` with defaults for all unset fields. Some defaults are in
// server_config.proto. The others depend on the machine and on `memory`.
v1::ServerConfig WithDefaults(
    v1::ServerConfig config, const ProcessMemory& memory = ThisProcessMemory());

// Returns INVALID_ARGUMENT if a field is out of range or contradicts another
// field. The error names the field. `config` must have been completed by
// WithDefaults().
absl::Status Validate(const v1::ServerConfig& config);

// Returns INVALID_ARGUMENT if the memory budget exceeds the process's memory
// limit. The error says which limit would be sufficient. `default_budget` is
// true if the user has not set the budget. In this case, the program and the
// models must fit into the limit too.
absl::Status CheckMemory(const ProcessMemory& memory, bool default_budget,
                         const v1::ServerConfig& config);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SERVER_CONFIG_H_
