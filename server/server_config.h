#ifndef SFMAMBA_SERVER_SERVER_CONFIG_H_
#define SFMAMBA_SERVER_SERVER_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// Reads a ServerConfig in text format. INVALID_ARGUMENT names line and column
// of an unknown field or a wrong value.
absl::StatusOr<v1::ServerConfig> ReadServerConfig(const std::string& path);

// The memory of the process, in bytes.
struct ProcessMemory {
  int64_t limit = 0;   // 0: not known.
  int64_t models = 0;  // What the models will take, estimated.
};
ProcessMemory ThisProcessMemory();  // Without models.

// `config` with every field that is unset at its default: those of
// server_config.proto, and those that depend on the machine and on `memory`.
v1::ServerConfig WithDefaults(
    v1::ServerConfig config, const ProcessMemory& memory = ThisProcessMemory());

// INVALID_ARGUMENT naming the first field that is out of range. Expects a
// config WithDefaults.
absl::Status Validate(const v1::ServerConfig& config);

// INVALID_ARGUMENT, with what would be enough, unless the memory budget fits
// into the limit: with the program and the models if it is the default one.
absl::Status CheckMemory(const ProcessMemory& memory, bool default_budget,
                         const v1::ServerConfig& config);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SERVER_CONFIG_H_
