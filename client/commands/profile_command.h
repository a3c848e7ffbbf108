#ifndef SFMAMBA_CLIENT_COMMANDS_PROFILE_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_PROFILE_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba profile [MODEL]`: how long the model's batches take, by size of the
// images and by their number, and which numbers pay. Says so if the server has
// not measured any. Returns the exit code.
int RunProfile(const std::vector<std::string>& arguments,
               const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_PROFILE_COMMAND_H_
