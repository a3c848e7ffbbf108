#ifndef SFMAMBA_SERVER_SETTINGS_FLAGS_H_
#define SFMAMBA_SERVER_SETTINGS_FLAGS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// The parsed command line. Each field of Command and of ServerConfig is a flag
// of the same name.
struct CommandLine {
  v1::Command command;
  // The fields of ServerConfig whose flags were given, each with its text.
  std::vector<std::pair<const google::protobuf::FieldDescriptor*, std::string>>
      settings;
};

// Parses the flags: --name=value, --name value and, for a bool, --name. If a
// flag is given twice, the last one counts, except that lists of texts grow.
// INVALID_ARGUMENT names the argument that is unknown or has a wrong value.
absl::Status ParseFlags(int argc, char** argv, CommandLine* command_line);

// Replaces the fields of `config` whose flags were given.
void ApplyFlags(const CommandLine& command_line, v1::ServerConfig* config);

// Returns the text of --help: by topic, each flag with its help, range and
// default.
std::string FlagsHelp();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_FLAGS_H_
