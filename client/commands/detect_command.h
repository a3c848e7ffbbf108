#ifndef SFMAMBA_CLIENT_COMMANDS_DETECT_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_DETECT_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba detect FILE...`: shows a table of objects. If --output_dir is given,
// also writes annotated pictures to it. Each file is sent in its own request.
// Returns the exit code.
int RunDetect(const std::vector<std::string>& arguments,
              const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_DETECT_COMMAND_H_
