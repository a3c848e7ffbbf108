#ifndef SFMAMBA_CLIENT_COMMANDS_MODELS_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_MODELS_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba models [NAME]`: lists the models that the server serves, or shows
// one model with its classes. Returns the exit code.
int RunModels(const std::vector<std::string>& arguments,
              const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_MODELS_COMMAND_H_
