#ifndef SFMAMBA_CLIENT_COMMANDS_STREAM_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_STREAM_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba stream FOLDER|-`: sends pictures over one stream and writes a line
// of JSON for each as its answer comes. Returns the exit code.
int RunStream(const std::vector<std::string>& arguments,
              const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_STREAM_COMMAND_H_
