#ifndef SFMAMBA_CLIENT_COMMANDS_STREAM_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_STREAM_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba stream FOLDER|-`: sends pictures over one stream. Writes a line of
// JSON for each picture when its answer arrives. Returns the exit code.
int RunStream(const std::vector<std::string>& arguments,
              const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_STREAM_COMMAND_H_
