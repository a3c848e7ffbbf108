#ifndef SFMAMBA_CLIENT_COMMANDS_PROFILE_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_PROFILE_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba profile [MODEL]`: shows the model's batch times by image size and
// batch size, and which batch sizes are efficient. If the server has not
// measured any batch, says that. Returns the exit code.
int RunProfile(const std::vector<std::string>& arguments,
               const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_PROFILE_COMMAND_H_
