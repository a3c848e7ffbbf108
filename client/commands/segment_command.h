#ifndef SFMAMBA_CLIENT_COMMANDS_SEGMENT_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_SEGMENT_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba segment FILE...`: shows a table of the classes in each picture. If
// --output_dir is given, also writes pictures with coloured classes to it. Each
// file is sent in its own request. Returns the exit code.
int RunSegment(const std::vector<std::string>& arguments,
               const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_SEGMENT_COMMAND_H_
