#ifndef SFMAMBA_CLIENT_COMMANDS_SEGMENT_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_SEGMENT_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba segment FILE...`: a table of the classes in each picture, and
// pictures with the classes in colour where --output_dir asks for them. Each
// file is a request of its own. Returns the exit code.
int RunSegment(const std::vector<std::string>& arguments,
               const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_SEGMENT_COMMAND_H_
