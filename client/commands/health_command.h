#ifndef SFMAMBA_CLIENT_COMMANDS_HEALTH_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_HEALTH_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba health`: exit code 0 if the server (or one of its services) is
// SERVING, else 1, as container health checks expect.
int RunHealth(const std::vector<std::string>& arguments,
              const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_HEALTH_COMMAND_H_
