#ifndef SFMAMBA_CLIENT_COMMANDS_ADMIN_ADMIN_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_ADMIN_ADMIN_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba admin ACTION`: changes what a server serves, or shows its state.
// Requests are never sent twice. Returns the exit code.
int RunAdmin(const std::vector<std::string>& arguments, const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_ADMIN_ADMIN_COMMAND_H_
