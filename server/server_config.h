#ifndef SFMAMBA_SERVER_SERVER_CONFIG_H_
#define SFMAMBA_SERVER_SERVER_CONFIG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// Reads a ServerConfig in text format. INVALID_ARGUMENT names line and column
// of an unknown field or a wrong value.
absl::StatusOr<v1::ServerConfig> ReadServerConfig(const std::string& path);

// `config` with every field that is unset at its default: those of
// server_config.proto, and those that depend on the machine.
v1::ServerConfig WithDefaults(v1::ServerConfig config);

// INVALID_ARGUMENT naming the first field that is out of range. Expects a
// config WithDefaults.
absl::Status Validate(const v1::ServerConfig& config);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SERVER_CONFIG_H_
