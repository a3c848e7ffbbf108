#ifndef SFMAMBA_CLIENT_COMMANDS_HEALTH_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_HEALTH_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba health`: asks whether the server is healthy. The flag --service
// selects a service or model of the server to ask about. Returns exit code 0 if
// the server, or the selected service or model, is SERVING. Otherwise returns
// 1, or 2 if the arguments are wrong. Health checks of containers, for example
// in Docker, expect 0 or 1.
int RunHealth(const std::vector<std::string>& arguments,
              const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_HEALTH_COMMAND_H_
