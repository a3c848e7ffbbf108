#ifndef SFMAMBA_SERVER_SETTINGS_FLAGS_H_
#define SFMAMBA_SERVER_SETTINGS_FLAGS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// The parsed command line. Each field of Command and ServerConfig is a flag
// with the field's name.
struct CommandLine {
  v1::Command command;
  // The fields of ServerConfig that were given as flags, each with the text of
  // its value.
  std::vector<std::pair<const google::protobuf::FieldDescriptor*, std::string>>
      settings;
};

// Parses flags of the forms --name=value, --name value and, for a bool, --name.
// If a flag is repeated, the last value counts. If the flag is a list of
// strings, each repetition adds a value. If a flag is unknown or has a
// malformed value, returns INVALID_ARGUMENT with the argument.
absl::Status ParseFlags(int argc, char** argv, CommandLine* command_line);

// Sets the fields of `config` that were given as flags. Earlier values of these
// fields are replaced.
void ApplyFlags(const CommandLine& command_line, v1::ServerConfig* config);

// Returns the text of --help. The text lists the flags by topic, each with its
// help, range and default.
std::string FlagsHelp();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_FLAGS_H_
