#ifndef SFMAMBA_SERVER_FLAGS_H_
#define SFMAMBA_SERVER_FLAGS_H_

#include <string>

#include "absl/status/status.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// What the command line says besides the fields of ServerConfig.
struct CommandLine {
  std::string config_path;  // Empty: none.
  bool help = false;
  bool validate_config = false;
  bool print_effective_config = false;
  bool tune = false;
};

// Reads the flags (--name=value, --name value, --name of a bool). Unlike
// Abseil's own parser it returns: INVALID_ARGUMENT names the argument that is
// unknown or has a wrong value.
absl::Status ParseFlags(int argc, char** argv, CommandLine* command_line);

// Writes the flags that were given over the fields of the same names.
void ApplyFlags(v1::ServerConfig* config);

// One line for each flag.
std::string FlagsHelp();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_FLAGS_H_
