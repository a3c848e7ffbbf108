#ifndef SFMAMBA_CLIENT_COMMANDS_HEALTH_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_HEALTH_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba health`: returns exit code 0 if the server, or one of its services,
// is SERVING. Otherwise returns 1. Health checks of containers expect this.
int RunHealth(const std::vector<std::string>& arguments,
              const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_HEALTH_COMMAND_H_
