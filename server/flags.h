#ifndef SFMAMBA_SERVER_FLAGS_H_
#define SFMAMBA_SERVER_FLAGS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// What the command line says: each field of Command and of ServerConfig is a
// flag of the same name.
struct CommandLine {
  v1::Command command;
  // The fields of ServerConfig that were given, each with its text.
  std::vector<std::pair<const google::protobuf::FieldDescriptor*, std::string>>
      settings;
};

// Reads the flags (--name=value, --name value, --name of a bool); of one that
// is given twice the last counts. INVALID_ARGUMENT names the argument that is
// unknown or has a wrong value.
absl::Status ParseFlags(int argc, char** argv, CommandLine* command_line);

// Writes the settings that were given over the fields of the same names.
void ApplyFlags(const CommandLine& command_line, v1::ServerConfig* config);

// Each flag with its form, and below it its help, range and default.
std::string FlagsHelp();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_FLAGS_H_
